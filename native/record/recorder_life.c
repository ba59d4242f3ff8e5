/* record/recorder_life.c -- the recorder's life: start, stop, settings, forks. What it does with a
 * range is in record/recorder.c.
 *
 * The settings lock makes starts, stops and changes of settings follow one another; it is taken
 * before every other lock.
 */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "opscope/usage.h"
#include "record/callback.h"
#include "record/metric.h"
#include "record/names.h"
#include "record/process.h"
#include "record/range.h"
#include "record/recorder_state.h"
#include "record/window.h"

enum { COST_RANGES = 64, USAGE_BYTES = 256 };

/* Beyond these the weights, or the sums over them, would not fit their integers. */
static const double LEAST_PROB = 1e-12;
static const uint64_t PERIOD_LIMIT_NS = 1000000000000000, WEIGHT_LIMIT = 1000000000;

static pthread_mutex_t settings = PTHREAD_MUTEX_INITIALIZER;

void opscope__settings_lock(void)
{
    pthread_mutex_lock(&settings);
}

void opscope__settings_unlock(void)
{
    pthread_mutex_unlock(&settings);
}

/* ---- the segment --------------------------------------------------------------------------- */

/* Writes how the recorder samples now into the segment's header. */
static void show_sampling(const struct opscope__recorder *recorder)
{
    if (recorder->segment.base == NULL) {
        return;
    }
    opscope_segment_header *header = opscope__segment_header(&recorder->segment);
    /* Partner: the reader of the file, to whom these are three facts by themselves. */
    opscope__store_relaxed(&header->window_ns, recorder->window_ns);
    opscope__store_relaxed(&header->period_ns, recorder->period_ns);
    opscope__store_relaxed(&header->sampling_prob_ppt,
                           (uint64_t)llround(
                               (recorder->window_ns == 0 ? recorder->sampling_prob : 1.0) * 1e12));
}

/* With the segment lock held: an empty segment, not yet published. */
static int make_segment(struct opscope__recorder *recorder)
{
    int status = opscope__names_start(recorder->label_keys);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__segment_create(&recorder->segment, recorder->directory);
    if (status != OPSCOPE_OK) {
        return status;
    }
    recorder->table_count = 0;
    recorder->free_tables = NULL;
    uint64_t rate = opscope__segment_header(&recorder->segment)->ticks_per_second;
    /* The same for every segment of a process. Partner: find_bucket, on threads still at work. */
    opscope__store_relaxed(
        &recorder->units_per_tick,
        (uint64_t)(((unsigned __int128)1 << (OPSCOPE_SEGMENT_SECOND_LOG2 + 32)) / rate));
    show_sampling(recorder);
    return OPSCOPE_OK;
}

/* With the segment lock held: the API usage said since what was last written. A forked child goes on
 * where its parent was, as it does not say the parent's keys again. */
static void write_usage(struct opscope__recorder *recorder)
{
    const char *key;
    while (recorder->segment.base != NULL &&
           (key = opscope_api_usage_key(recorder->usage_count)) != NULL) {
        (void)opscope__segment_add_entry(&recorder->segment, OPSCOPE_ENTRY_USAGE, 0, 0, key,
                                         (uint32_t)strnlen(key, USAGE_BYTES - 1) + 1);
        recorder->usage_count++;
    }
}

void opscope__recorder_resume(void)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    recorder->is_pending = false;
    if (make_segment(recorder) != OPSCOPE_OK) {
        opscope__store_relaxed(&recorder->weight, 0);
        return;
    }
    opscope__segment_header(&recorder->segment)->record_cost_ps = recorder->record_cost_ps;
    opscope__notes_write_all(&recorder->segment);
    write_usage(recorder);
    if (opscope__segment_publish(&recorder->segment) != OPSCOPE_OK) {
        opscope__segment_close(&recorder->segment, true);
        opscope__store_relaxed(&recorder->weight, 0);
        return;
    }
    opscope__metrics_open(&recorder->segment);
    if (recorder->window_ns != 0) {
        opscope__window_start(recorder->window_ns, recorder->period_ns);
    }
}

void opscope__recorder_fork_child(void)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    if (recorder->segment.base == NULL) {
        return;
    }
    opscope__segment_abandon(&recorder->segment);
    opscope__metrics_fork_child();
    recorder->free_tables = NULL; /* the parent's; a forked child leaks them */
    recorder->is_pending = true;
    if (recorder->window_ns != 0) {
        opscope__store_relaxed(&recorder->weight, 0);
    }
}

void opscope__recorder_fork_child_done(void)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    if (recorder->is_pending && recorder->handle != 0) {
        (void)opscope_enable_callback(recorder->handle);
    }
}

/* ---- what recording costs ------------------------------------------------------------------ */

/* A recorded range as this processor runs it now, dispatch and both clock reads included, in
 * picoseconds. Counted in the `other` cell of this thread's table, which is emptied again before
 * anybody can read it. */
static uint64_t measure_cost_ps(const struct opscope__recorder *recorder)
{
    struct opscope__thread *thread = opscope__thread_self();
    if (thread == NULL || opscope__recorder_thread_open(thread) == NULL) {
        return 0;
    }
    const opscope_callback callback = {.start = opscope__recorder_range_start,
                                       .end = opscope__recorder_range_end};
    opscope__hot.label_bits = 0; /* the cell that is emptied is the one without labels */
    uint64_t ticks = opscope__range_cost_ticks(&callback, opscope_op_other(), COST_RANGES);
    opscope__recorder_labels_changed(thread);
    const opscope__table *table = thread->recorder->table;
    for (uint32_t octave = 0; octave < OPSCOPE_SEGMENT_OCTAVES; octave++) {
        memset(opscope__table_line(table, table->other, octave), 0, sizeof(opscope_line));
    }
    memset(&table->other->sample_count, 0,
           offsetof(opscope_cell, octave_line) - offsetof(opscope_cell, sample_count));
    uint64_t rate = opscope__segment_header(&recorder->segment)->ticks_per_second;
    return (uint64_t)((double)ticks / COST_RANGES * 1e12 / (double)rate);
}

/* ---- sampling ------------------------------------------------------------------------------ */

static int check_sampling(double sampling_prob, uint64_t window_ns, uint64_t period_ns)
{
    bool valid = window_ns == 0
                     ? sampling_prob == 0.0 || (sampling_prob >= LEAST_PROB && sampling_prob <= 1.0)
                     : period_ns > window_ns && period_ns <= PERIOD_LIMIT_NS &&
                           period_ns / window_ns < WEIGHT_LIMIT;
    return valid ? OPSCOPE_OK : OPSCOPE_ERR_INVALID;
}

static void begin_serial(struct opscope__recorder *recorder, bool is_whole)
{
    uint64_t serial = opscope__add_relaxed(&recorder->serial, 1) + 1;
    opscope__store_relaxed(&recorder->whole_serial, is_whole ? serial : 0);
}

/* With the settings lock held: registers the callback anew, sampling as the settings say. */
static int apply_sampling(struct opscope__recorder *recorder)
{
    const bool windows = recorder->window_ns != 0;
    const double prob = windows ? 1.0 : recorder->sampling_prob;
    const opscope_callback callback = {.start = opscope__recorder_range_start,
                                       .end = opscope__recorder_range_end,
                                       .sampling_prob = prob,
                                       .scopes = recorder->scopes};
    opscope__window_stop();
    begin_serial(recorder, false); /* first: ranges open now will miss some of those within them */
    if (recorder->handle != 0) {
        (void)opscope_remove_callback(recorder->handle, false);
        recorder->handle = 0;
    }
    const bool all = !windows && prob >= 1.0;
    double weight = prob > 0.0 ? (double)OPSCOPE__WEIGHT_ONE / prob : 0.0;
    opscope__store_relaxed(&recorder->weight, windows ? 0 : (uint64_t)llround(weight));
    begin_serial(recorder, all);
    int status = opscope__add_global_leaf(&callback, &recorder->handle);
    if (status == OPSCOPE_OK && windows) {
        (void)opscope_disable_callback(recorder->handle);
        status = opscope__window_start(recorder->window_ns, recorder->period_ns);
    }
    return status;
}

int opscope_recorder_set_sampling(double sampling_prob, uint64_t window_ns, uint64_t period_ns)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    int status = check_sampling(sampling_prob, window_ns, period_ns);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__settings_lock();
    if (!recorder->is_running) {
        opscope__settings_unlock();
        return OPSCOPE_ERR_NOT_FOUND;
    }
    recorder->sampling_prob = sampling_prob;
    recorder->window_ns = window_ns;
    recorder->period_ns = period_ns;
    status = apply_sampling(recorder);
    opscope__segment_lock();
    show_sampling(recorder);
    opscope__segment_unlock();
    opscope__settings_unlock();
    return status;
}

void opscope__recorder_window_open(uint64_t weight)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope__store_relaxed(&recorder->weight, weight);
    begin_serial(recorder, true);
    (void)opscope_enable_callback(recorder->handle);
}

void opscope__recorder_window_close(uint64_t on_ns, uint64_t wall_ns)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    begin_serial(recorder, false); /* first: see apply_sampling */
    (void)opscope_disable_callback(recorder->handle);
    opscope__store_relaxed(&recorder->weight, 0);
    opscope__segment_lock();
    if (recorder->segment.base != NULL) {
        opscope_segment_header *header = opscope__segment_header(&recorder->segment);
        opscope__add_relaxed(&header->window_count, 1);
        opscope__add_relaxed(&header->window_on_ns, on_ns);
        opscope__add_relaxed(&header->window_wall_ns, wall_ns);
    }
    opscope__segment_unlock();
}

int opscope_recorder_window_begin(double weight)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    if (!(weight >= 1.0 && weight <= (double)WEIGHT_LIMIT)) {
        return OPSCOPE_ERR_INVALID;
    }
    if (!recorder->is_running || recorder->window_ns == 0) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    opscope__recorder_window_open((uint64_t)llround(weight * (double)OPSCOPE__WEIGHT_ONE));
    return OPSCOPE_OK;
}

int opscope_recorder_window_end(void)
{
    if (!opscope__recorder.is_running || opscope__recorder.window_ns == 0) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    opscope__recorder_window_close(0, 0);
    return OPSCOPE_OK;
}

/* ---- start and stop ------------------------------------------------------------------------ */

static int take_options(struct opscope__recorder *recorder, const opscope_recorder_options *options)
{
    const char *keys = options->label_keys != NULL ? options->label_keys : "";
    size_t directory_bytes = options->directory != NULL ? strlen(options->directory) : 0;
    if (directory_bytes == 0 || directory_bytes >= sizeof recorder->directory ||
        options->directory[0] != '/' || strlen(keys) >= sizeof recorder->label_keys ||
        options->scopes >> OPSCOPE_SCOPE_COUNT != 0) {
        return OPSCOPE_ERR_INVALID;
    }
    int status =
        check_sampling(options->sampling_prob, options->window_ns, options->period_ns);
    if (status == OPSCOPE_OK) {
        memcpy(recorder->directory, options->directory, directory_bytes + 1);
        memcpy(recorder->label_keys, keys, strlen(keys) + 1);
        recorder->sampling_prob = options->sampling_prob;
        recorder->window_ns = options->window_ns;
        recorder->period_ns = options->period_ns;
        recorder->scopes = options->scopes;
    }
    return status;
}

/* With the settings lock held. */
static int open_segment(struct opscope__recorder *recorder)
{
    opscope__segment_lock();
    recorder->is_pending = false;
    int status = make_segment(recorder);
    opscope__segment_unlock();
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__store_relaxed(&recorder->weight, OPSCOPE__WEIGHT_ONE);
    recorder->record_cost_ps = measure_cost_ps(recorder);
    opscope__store_relaxed(&recorder->weight, 0);

    opscope__segment_lock();
    opscope__segment_header(&recorder->segment)->record_cost_ps = recorder->record_cost_ps;
    opscope__notes_write_all(&recorder->segment);
    recorder->usage_count = 0;
    write_usage(recorder);
    status = opscope__segment_publish(&recorder->segment);
    if (status == OPSCOPE_OK) {
        opscope__metrics_open(&recorder->segment);
    } else {
        opscope__segment_close(&recorder->segment, true);
    }
    opscope__segment_unlock();
    return status;
}

int opscope_recorder_start(const opscope_recorder_options *options)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope__process_start();
    opscope__settings_lock();
    int status = recorder->is_running ? OPSCOPE_ERR_BUSY : take_options(recorder, options);
    if (status == OPSCOPE_OK) {
        status = open_segment(recorder);
    }
    if (status == OPSCOPE_OK) {
        recorder->is_running = true;
        status = apply_sampling(recorder);
    }
    opscope__settings_unlock();
    if (status != OPSCOPE_OK && status != OPSCOPE_ERR_BUSY) {
        (void)opscope_recorder_stop(true);
    }
    return status;
}

int opscope_recorder_stop(bool discard)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope__settings_lock();
    if (!recorder->is_running) {
        opscope__settings_unlock();
        return OPSCOPE_ERR_NOT_FOUND;
    }
    opscope__window_stop();
    begin_serial(recorder, false);
    if (recorder->handle != 0) {
        (void)opscope_remove_callback(recorder->handle, false);
        recorder->handle = 0;
    }
    opscope__store_relaxed(&recorder->weight, 0);
    opscope__segment_lock();
    recorder->is_pending = false;
    while (recorder->free_tables != NULL) {
        opscope__table *table = recorder->free_tables;
        recorder->free_tables = table->next_free;
        opscope__table_destroy(table);
    }
    if (recorder->segment.base != NULL) {
        opscope__metrics_close();
        opscope__segment_close(&recorder->segment, discard);
    }
    opscope__segment_unlock();
    recorder->is_running = false;
    opscope__settings_unlock();
    return OPSCOPE_OK;
}

/* ---- inspection ---------------------------------------------------------------------------- */

void opscope_recorder_read_status(opscope_recorder_status *out)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope_recorder_status status = {0};
    opscope__settings_lock();
    opscope__segment_lock();
    status.running = recorder->is_running;
    status.in_window = recorder->is_running && (recorder->window_ns == 0 ||
                                                opscope__load_relaxed(&recorder->weight) != 0);
    status.record_cost_ps = recorder->record_cost_ps;
    if (recorder->segment.base != NULL) {
        opscope_segment_header *header = opscope__segment_header(&recorder->segment);
        status.dropped_count = opscope__load_relaxed(&header->dropped_count);
        status.folded_count = opscope__load_relaxed(&header->folded_count);
        status.window_count = opscope__load_relaxed(&header->window_count);
        memcpy(status.path, recorder->segment.path, sizeof status.path);
    }
    opscope__segment_unlock();
    opscope__settings_unlock();
    *out = status;
}

int opscope_recorder_note(const char *key, const char *value)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope__segment_lock();
    int status = recorder->segment.base != NULL || recorder->is_pending
                     ? opscope__notes_set(&recorder->segment, key, value)
                     : OPSCOPE_ERR_NOT_FOUND;
    opscope__segment_unlock();
    return status;
}

void opscope__recorder_usage(void)
{
    opscope__segment_lock();
    write_usage(&opscope__recorder);
    opscope__segment_unlock();
}

void opscope__recorder_callback_error(void)
{
    const struct opscope__recorder *recorder = &opscope__recorder;
    opscope__segment_lock();
    if (recorder->segment.base != NULL) {
        opscope__add_relaxed(&opscope__segment_header(&recorder->segment)->callback_error_count, 1);
    }
    opscope__segment_unlock();
}
