/* recorder/life.c -- the recorder's life cycle: start, stop, settings, forks. recorder/recorder.c
 * records the ranges. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "opscope/usage.h"
#include "record/callback.h"
#include "record/observer.h"
#include "record/range.h"
#include "recorder/control.h"
#include "recorder/cost.h"
#include "recorder/cost_trial.h"
#include "recorder/ledger.h"
#include "recorder/metric.h"
#include "recorder/sampling.h"
#include "recorder/outer_variance.h"
#include "recorder/state.h"
#include "segment/names.h"
#include "segment/sandbox.h"

enum { COST_RANGES = 64, USAGE_BYTES = 256 };

/* ---- the segment --------------------------------------------------------------------------- */

/* With the segment lock held: creates an empty segment, not yet published. */
static int make_segment(struct opscope__recorder *recorder)
{
    int status = opscope__names_start(recorder->wanted.label_keys);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__segment_create(&recorder->segment, recorder->directory);
    if (status != OPSCOPE_OK) {
        return status;
    }
    recorder->table_count = 0;
    recorder->free_tables = NULL;
    opscope__labels_forget(recorder);
    opscope__outer_inside_forget();
    uint64_t rate = opscope__segment_header(&recorder->segment)->ticks_per_second;
    opscope__store_relaxed(&recorder->poll_period_ticks, rate / OPSCOPE__POLLS_PER_SECOND);
    /* Every segment of a process has the same value. Partner: find_bucket, on threads that still
     * record. */
    opscope__store_relaxed(
        &recorder->units_per_tick,
        (uint64_t)(((unsigned __int128)1 << (OPSCOPE_SEGMENT_SECOND_LOG2 + 32)) / rate));
    opscope__sampling_show(recorder);
    return OPSCOPE_OK;
}

/* With the segment lock held: writes the API-usage keys added since the last call. A forked child
 * continues after its parent's keys, because it does not report them again. */
static void write_usage(struct opscope__recorder *recorder)
{
    const char *key;
    while (recorder->segment.base != NULL &&
           (key = opscope_api_usage_key(recorder->usage_count)) != NULL) {
        const opscope_entry entry = {.kind = OPSCOPE_ENTRY_USAGE,
                                     .bytes = (uint32_t)strnlen(key, USAGE_BYTES - 1) + 1};
        (void)opscope__segment_add_entry(&recorder->segment, &entry, key);
        recorder->usage_count++;
    }
}

/* The user who owns the files. Written at a start, under the settings lock, and in a child, which
 * has a single thread. */
static uid_t user;

/* A child that has become another user, such as a worker of a server started by root, puts its
 * files into that user's directory: a directory named after a user belongs to that user alone. */
static void follow_user(char *directory, size_t capacity)
{
    if (geteuid() == user) {
        return; /* the directory has a name of its own */
    }
    user = geteuid();
    static const char prefix[] = "opscope-";
    char *name = strrchr(directory, '/') + 1; /* the path is absolute */
    char *number = name + strlen(prefix);
    char wanted[32];
    if (strncmp(name, prefix, strlen(prefix)) == 0 && *number != '\0' &&
        number[strspn(number, "0123456789")] == '\0') {
        int bytes = snprintf(wanted, sizeof wanted, "%llu", (unsigned long long)user);
        if (bytes > 0 && (size_t)(number - directory) + (size_t)bytes < capacity) {
            memcpy(number, wanted, (size_t)bytes + 1);
        }
    }
}

void opscope__recorder_resume(void)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    recorder->is_pending = false;
    if (opscope__sandbox_is_new()) {
        opscope__store_relaxed(&recorder->is_open,
                               0); /* make no files, not even the ledger entry */
        return;
    }
    follow_user(recorder->directory, sizeof recorder->directory);
    int status = make_segment(recorder);
    if (status != OPSCOPE_OK) {
        opscope__store_relaxed(&recorder->is_open, 0);
        opscope__ledger_write(recorder->directory, status);
        return;
    }
    opscope__segment_header(&recorder->segment)->record_cost_ps = recorder->record_cost_ps;
    opscope__control_start(recorder);
    opscope__notes_write_all(&recorder->segment);
    write_usage(recorder);
    status = opscope__segment_publish(&recorder->segment);
    if (status != OPSCOPE_OK) {
        opscope__segment_close(&recorder->segment, true);
        opscope__store_relaxed(&recorder->is_open, 0);
        opscope__ledger_write(recorder->directory, status);
        return;
    }
    opscope__metrics_open(&recorder->segment);
    opscope__sampling_resume(recorder);
}

void opscope__recorder_fork_child(void)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    if (recorder->segment.base == NULL) {
        return;
    }
    opscope__store_relaxed(&recorder->awaits_range,
                           0); /* it makes the segment and everything else */
    opscope__segment_abandon(&recorder->segment);
    opscope__metrics_fork_child();
    recorder->free_tables = NULL; /* the parent's; a forked child leaks them */
    recorder->is_pending = true;
    if (recorder->sampling.window_ns != 0) {
        opscope__store_relaxed(&recorder->is_open, 0);
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

/* The cost of a recorded range as this processor runs it now, including dispatch and both clock
 * reads, in picoseconds. The ranges are counted in the `other` cell of this thread's table, which
 * is cleared again before the segment is published. */
static uint64_t measure_cost_ps(const struct opscope__recorder *recorder)
{
    struct opscope__thread *thread = opscope__thread_self();
    if (thread == NULL || opscope__recorder_thread_open(thread) == NULL) {
        return 0;
    }
    const opscope_callback callback = {.start = opscope__recorder_range_start,
                                       .end = opscope__recorder_range_end};
    opscope__hot.label_bits = 0; /* the cleared cell is the one without labels */
    uint64_t ticks = opscope__range_cost_ticks(&callback, opscope_op_other(), COST_RANGES);
    opscope__recorder_labels_changed(thread);
    const opscope__table *table = thread->recorder->table;
    for (uint32_t octave = 0; octave < OPSCOPE_SEGMENT_OCTAVES; octave++) {
        memset(opscope__table_line(table, table->other, octave), 0, sizeof(opscope_line));
    }
    memset(&table->other->sample_count, 0,
           offsetof(opscope_cell, octave_line) - offsetof(opscope_cell, sample_count));
    opscope_segment_header *header = opscope__segment_header(&recorder->segment);
    /* The program did not cause this cost. Partner: threads that already add theirs. */
    opscope__store_relaxed(&header->uncounted_cost_ps, 0);
    const double of_range = (double)ticks / COST_RANGES;
    opscope__cost_probe_lacks(fmax(0.0, of_range - opscope__cost_trial_dispatch_ticks()));
    return (uint64_t)(of_range * 1e12 / (double)header->ticks_per_second);
}

/* ---- start and stop ------------------------------------------------------------------------ */

static int take_options(struct opscope__recorder *recorder, const opscope_recorder_options *options)
{
    const char *keys = options->label_keys != NULL ? options->label_keys : "";
    size_t directory_bytes = options->directory != NULL ? strlen(options->directory) : 0;
    struct opscope__settings settings = {
        .is_enabled = true,
        .sampling = {options->sampling_prob, options->window_ns, options->period_ns},
        .max_overhead_ppb = options->max_overhead_ppb,
        .budget_is_default = options->budget_is_default};
    if (directory_bytes == 0 || directory_bytes >= sizeof recorder->directory ||
        options->directory[0] != '/' || strlen(keys) >= sizeof settings.label_keys ||
        options->max_overhead_ppb > 1000000000 || options->scopes >> OPSCOPE_SCOPE_COUNT != 0) {
        return OPSCOPE_ERR_INVALID;
    }
    int status = opscope__sampling_check(&settings.sampling);
    if (status == OPSCOPE_OK) {
        memcpy(recorder->directory, options->directory, directory_bytes + 1);
        memcpy(settings.label_keys, keys, strlen(keys) + 1);
        recorder->configured = recorder->wanted = settings;
        recorder->inherited = recorder->block = (opscope_control){0};
        recorder->sampling = settings.sampling;
        recorder->is_off = opscope__settings_are_off(&settings);
        recorder->scopes = options->scopes;
    }
    return status;
}

/* With the settings lock held. */
static int open_segment(struct opscope__recorder *recorder)
{
    opscope__segment_lock();
    recorder->is_pending = false;
    (void)opscope__notes_set(&recorder->segment, "labels", recorder->wanted.label_keys);
    int status = make_segment(recorder);
    opscope__segment_unlock();
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__store_relaxed(&recorder->is_open, 1);
    opscope__store_relaxed(&recorder->weights[0], OPSCOPE__WEIGHT_ONE);
    recorder->record_cost_ps = measure_cost_ps(recorder);
    opscope__store_relaxed(&recorder->is_open, 0);

    opscope__segment_lock();
    opscope_segment_header *header = opscope__segment_header(&recorder->segment);
    header->record_cost_ps = recorder->record_cost_ps;
    if (recorder->record_cost_ps != 0) {
        opscope__table_know_cost(opscope__hot.thread->recorder->table, header);
    }
    opscope__control_start(recorder);
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
        user = geteuid();
        opscope__sandbox_note();
        status = open_segment(recorder);
    }
    if (status == OPSCOPE_OK) {
        recorder->is_running = true;
        /* Sampling by probability, ranges call the recorder from the start, and a later plan may
         * begin at one. */
        opscope__store_relaxed(&recorder->awaits_range,
                               recorder->is_off || recorder->sampling.window_ns != 0);
        status = opscope__sampling_apply(recorder, recorder->sampling, recorder->is_off);
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
    opscope__sampling_stop(recorder);
    opscope__segment_lock();
    recorder->is_pending = false;
    while (recorder->free_tables != NULL) {
        opscope__table *table = recorder->free_tables;
        recorder->free_tables = table->next_free;
        opscope__table_destroy(table);
    }
    if (recorder->segment.base != NULL) {
        opscope__metrics_close();
        if (recorder->sampling.window_ns != 0) {
            /* Partner: the reader of the file; independent of other memory. */
            opscope__store_relaxed(&opscope__segment_header(&recorder->segment)->window_end_ticks,
                                   opscope__ticks());
        }
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
    /* A forked child's segment is made at its first range, or not at all. */
    status.running =
        recorder->is_running && (recorder->segment.base != NULL || recorder->is_pending);
    status.in_window = recorder->is_running && (recorder->sampling.window_ns == 0 ||
                                                opscope__load_relaxed(&recorder->is_open) != 0);
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
