/* recorder/control.c -- see recorder/control.h. recorder/settings.c validates settings and combines
 * the layers; recorder/governor.c makes the governor's decisions. */
#include "recorder/control.h"

#include <string.h>
#include <time.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "base/real_time.h"
#include "opscope/recorder.h"
#include "recorder/cost.h"
#include "recorder/sampling.h"
#include "recorder/state.h"
#include "segment/names.h"

const struct opscope__trace_control *opscope__trace_control;

_Static_assert(sizeof(opscope_control) % sizeof(uint64_t) == 0, "copied by words");

/* ---- the block -------------------------------------------------------------------------------- */

static const opscope_control *control_of(const opscope_segment_header *header)
{
    return (const void *)((const char *)header + OPSCOPE_SEGMENT_CONTROL_OFFSET);
}

static opscope_control_answer *answer_of(opscope_segment_header *header)
{
    return (void *)((char *)header + OPSCOPE_SEGMENT_ANSWER_OFFSET);
}

/* False if the block is being written, or was left half written. Partner: the controller, which
 * writes an odd serial first and the next even one last. */
static bool copy_block(const opscope_control *shared, opscope_control *out)
{
    uint64_t words[sizeof *out / sizeof(uint64_t)];
    const uint64_t *from = (const uint64_t *)(const void *)shared;
    const uint64_t serial = opscope__load_acquire(&shared->serial);
    if (serial == 0 || serial % 2 != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        words[i] = opscope__load_acquire(&from[i]); /* before the second load of the serial */
    }
    if (opscope__load_relaxed(&shared->serial) != serial) {
        return false;
    }
    memcpy(out, words, sizeof *out);
    return true;
}

static bool read_block(const struct opscope__recorder *recorder, opscope_control *out)
{
    bool is_whole = false;
    opscope__segment_lock();
    if (recorder->segment.base != NULL) {
        is_whole = copy_block(control_of(opscope__segment_header(&recorder->segment)), out);
    }
    opscope__segment_unlock();
    return is_whole;
}

static void answer_settings(struct opscope__recorder *recorder, uint64_t serial, int status,
                            uint64_t refused)
{
    opscope__segment_lock();
    if (recorder->segment.base != NULL) {
        opscope_control_answer *answer = answer_of(opscope__segment_header(&recorder->segment));
        opscope__store_relaxed(&answer->settings_status, (uint64_t)-status);
        opscope__store_relaxed(&answer->refused, refused);
        /* Partner: the controller, which reads the other fields once it sees its serial. */
        opscope__store_release(&answer->settings_serial, serial);
    }
    opscope__segment_unlock();
}

static void answer_trace(struct opscope__recorder *recorder, uint64_t serial, int status)
{
    opscope__segment_lock();
    if (recorder->segment.base != NULL) {
        opscope_control_answer *answer = answer_of(opscope__segment_header(&recorder->segment));
        opscope__store_relaxed(&answer->trace_status, (uint64_t)-status);
        /* Partner: as in answer_settings. */
        opscope__store_release(&answer->trace_serial, serial);
    }
    opscope__segment_unlock();
}

/* ---- the governor ------------------------------------------------------------------------------ */

/* With the segment lock held. */
static struct opscope__governor_reading read_costs(const struct opscope__recorder *recorder)
{
    struct opscope__cost cost;
    opscope__cost_read(&recorder->segment, &cost);
    return (struct opscope__governor_reading){
        .wall_ns = opscope__monotonic_ns(),
        .cpu_ns = opscope__clock_ns(CLOCK_PROCESS_CPUTIME_ID),
        .sampled_ns = cost.sampled_ns,
        .whole_ns = cost.outer_ns,
        .sampled_factor = cost.factor,
        .whole_factor = cost.outer_factor,
        .follows_outer = recorder->outer_handle != 0,
        .driver_ns = recorder->segment.base != NULL
                         ? opscope__load_relaxed(
                               &opscope__segment_header(&recorder->segment)->window_thread_ns)
                         : 0};
}

/* With the segment lock held. Partner of the stores: the reader of the file; each value is
 * independent of other memory. */
static void show_costs(const struct opscope__recorder *recorder)
{
    if (recorder->segment.base != NULL) {
        opscope_segment_header *header = opscope__segment_header(&recorder->segment);
        const opscope__governor *governor = &recorder->governor;
        opscope__store_relaxed(&header->overhead_budget_ppb, governor->budget_ppb);
        opscope__store_relaxed(&header->overhead_ppb, governor->overhead_ppb);
        opscope__store_relaxed(&header->adaptation_count, governor->adaptation_count);
    }
}

static void plan_next(struct opscope__recorder *recorder)
{
    /* Partner: opscope__control_poll; a late or early governor does no harm. */
    opscope__store_relaxed(&recorder->governor_due_ticks,
                           opscope__ticks() + opscope__load_relaxed(&recorder->poll_period_ticks) *
                                                  OPSCOPE__POLLS_PER_SECOND / 2);
}

/* With the segment lock held. */
static void start_governor(struct opscope__recorder *recorder)
{
    const struct opscope__governor_reading now = read_costs(recorder);
    opscope__governor_start(&recorder->governor, opscope__settings_budget_ppb(&recorder->wanted),
                            opscope__settings_outer_budget_ppb(&recorder->wanted), &now);
    show_costs(recorder);
    plan_next(recorder);
}

static void govern(struct opscope__recorder *recorder)
{
    opscope__segment_lock();
    const struct opscope__governor_reading now = read_costs(recorder);
    opscope__segment_unlock();
    const struct opscope__sampling *asked = &recorder->wanted.sampling;
    bool is_changed = opscope__governor_judge(&recorder->governor, asked, &now);
    recorder->spares_outer = recorder->governor.spares_outer;
    if (is_changed && !opscope__settings_are_off(&recorder->wanted)) {
        (void)opscope__sampling_apply(recorder,
                                      opscope__governor_scaled(&recorder->governor, asked), false);
    }
    opscope__segment_lock();
    show_costs(recorder);
    plan_next(recorder);
    opscope__segment_unlock();
}

/* ---- taking effect ------------------------------------------------------------------------------- */

/* The settings in force: the block's over the inherited ones over the configured ones. */
static int combine(const struct opscope__recorder *recorder, const opscope_control *block,
                   struct opscope__settings *out, uint64_t *out_refused)
{
    *out = recorder->configured;
    if ((block->given & OPSCOPE_CONTROL_ALONE) == 0) {
        (void)opscope__settings_overlay(out, &recorder->inherited, out_refused);
    }
    return opscope__settings_overlay(out, block, out_refused);
}

static void set_label_keys(struct opscope__recorder *recorder, const char *keys)
{
    opscope__segment_lock();
    (void)opscope__names_set_label_keys(keys); /* the overlay has checked them */
    (void)opscope__notes_set(&recorder->segment, "labels", keys);
    opscope__labels_forget(recorder);
    opscope__segment_unlock();
    opscope__registry_lock();
    opscope__version_bump(); /* threads look up their labels again at their next range */
    opscope__registry_unlock();
}

/* With the settings lock held. */
static int put_into_force(struct opscope__recorder *recorder,
                          const struct opscope__settings *wanted)
{
    const struct opscope__settings before = recorder->wanted;
    int status = OPSCOPE_OK;
    const bool is_off = opscope__settings_are_off(wanted);
    const bool is_same = is_off == recorder->is_off &&
                         opscope__sampling_is_same(&wanted->sampling, &before.sampling);
    recorder->wanted = *wanted;
    if (!is_same || opscope__settings_budget_ppb(wanted) != recorder->governor.budget_ppb ||
        opscope__settings_outer_budget_ppb(wanted) != recorder->governor.outer_budget_ppb) {
        opscope__segment_lock();
        start_governor(recorder);
        recorder->spares_outer = false;
        opscope__segment_unlock();
        status = opscope__sampling_apply(recorder, wanted->sampling, is_off);
    }
    if (status != OPSCOPE_OK) {
        recorder->wanted = before;
        (void)opscope__sampling_apply(recorder, before.sampling,
                                      opscope__settings_are_off(&before));
        return status;
    }
    opscope__segment_lock();
    opscope__sampling_show(recorder); /* perhaps only `enabled` has changed */
    opscope__segment_unlock();
    if (strcmp(before.label_keys, wanted->label_keys) != 0) {
        set_label_keys(recorder, wanted->label_keys);
    }
    return OPSCOPE_OK;
}

int opscope__control_refresh(struct opscope__recorder *recorder)
{
    struct opscope__settings wanted;
    uint64_t refused;
    (void)combine(recorder, &recorder->block, &wanted, &refused);
    return put_into_force(recorder, &wanted);
}

static void take_settings(struct opscope__recorder *recorder, const opscope_control *block)
{
    struct opscope__settings wanted;
    uint64_t refused = 0;
    int status = combine(recorder, block, &wanted, &refused);
    if (status == OPSCOPE_OK) {
        status = put_into_force(recorder, &wanted);
    }
    if (status == OPSCOPE_OK) {
        recorder->block = *block;
    }
    answer_settings(recorder, block->settings_serial, status, refused);
}

static void take_trace(struct opscope__recorder *recorder, const opscope_control *block)
{
    char path[sizeof recorder->segment.path];
    opscope__segment_lock();
    memcpy(path, recorder->segment.path, sizeof path);
    opscope__segment_unlock();
    int status = opscope__trace_control->start(path, block->trace_serial, block->trace_duration_ns,
                                               block->trace_bytes, block->trace_flags);
    answer_trace(recorder, block->trace_serial, status);
}

/* With the settings lock held. */
static void poll_block(struct opscope__recorder *recorder)
{
    opscope_control block;
    if (read_block(recorder, &block) &&
        block.serial != opscope__load_relaxed(&recorder->seen_serial)) {
        /* Partner: the polls, which compare it. */
        opscope__store_relaxed(&recorder->seen_serial, block.serial);
        if (block.settings_serial != recorder->seen_settings_serial) {
            recorder->seen_settings_serial = block.settings_serial;
            take_settings(recorder, &block);
        }
        if (block.trace_serial != recorder->seen_trace_serial) {
            recorder->seen_trace_serial = block.trace_serial;
            take_trace(recorder, &block);
        }
    }
    if (opscope__ticks() >= opscope__load_relaxed(&recorder->governor_due_ticks)) {
        govern(recorder);
    }
}

void opscope__control_apply(void)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    if (!opscope__settings_trylock()) {
        return; /* another thread is polling */
    }
    if (recorder->is_running) {
        poll_block(recorder);
    }
    opscope__settings_unlock();
    opscope__trace_control->poll();
}

/* The segment may be closing. The reader then sees the old memory or the new; either is correct. */
static bool is_news(const opscope_segment_header *header)
{
    return opscope__load_relaxed(&control_of(header)->serial) !=
           opscope__load_relaxed(&opscope__recorder.seen_serial);
}

uint64_t opscope__control_poll(const opscope_segment_header *header, uint64_t now_ticks)
{
    const struct opscope__recorder *recorder = &opscope__recorder;
    if ((header != NULL ? is_news(header) : opscope__control_is_news()) ||
        now_ticks >= opscope__load_relaxed(&recorder->governor_due_ticks)) {
        opscope__control_apply();
    } else {
        opscope__trace_control->poll();
    }
    return now_ticks + opscope__load_relaxed(&recorder->poll_period_ticks);
}

bool opscope__control_is_news(void)
{
    const struct opscope__recorder *recorder = &opscope__recorder;
    opscope__segment_lock();
    bool found =
        recorder->segment.base != NULL && is_news(opscope__segment_header(&recorder->segment));
    opscope__segment_unlock();
    return found;
}

int opscope_recorder_set_sampling(double sampling_prob, uint64_t window_ns, uint64_t period_ns)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    const struct opscope__sampling sampling = {sampling_prob, window_ns, period_ns};
    int status = opscope__sampling_check(&sampling);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__settings_lock();
    if (recorder->is_running) {
        const struct opscope__sampling before = recorder->configured.sampling;
        recorder->configured.sampling = sampling;
        status = opscope__control_refresh(recorder);
        if (status != OPSCOPE_OK) {
            recorder->configured.sampling = before;
        }
    } else {
        status = OPSCOPE_ERR_NOT_FOUND;
    }
    opscope__settings_unlock();
    return status;
}

/* ---- beginnings ----------------------------------------------------------------------------------- */

void opscope__control_start(struct opscope__recorder *recorder)
{
    opscope__change_merge(&recorder->inherited, &recorder->block);
    recorder->inherited.given &= OPSCOPE_CONTROL_ALL;
    recorder->block = (opscope_control){0};
    recorder->seen_settings_serial = recorder->seen_trace_serial = 0;
    opscope__store_relaxed(&recorder->seen_serial, 0);
    start_governor(recorder);
}

int opscope_recorder_inherit(const opscope_control *change, uint64_t *out_refused)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    struct opscope__settings unused;
    uint64_t refused = 0;
    opscope__settings_lock();
    int status = recorder->is_running ? OPSCOPE_OK : OPSCOPE_ERR_NOT_FOUND;
    if (status == OPSCOPE_OK) {
        unused = recorder->configured;
        status = opscope__settings_overlay(&unused, change, &refused);
    }
    if (status == OPSCOPE_OK) {
        const opscope_control before = recorder->inherited;
        opscope__change_merge(&recorder->inherited, change);
        status = opscope__control_refresh(recorder);
        if (status != OPSCOPE_OK) {
            recorder->inherited = before;
        }
    }
    opscope__settings_unlock();
    if (status != OPSCOPE_OK) {
        *out_refused = refused;
    }
    return status;
}
