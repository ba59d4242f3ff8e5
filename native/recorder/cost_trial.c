/* recorder/cost_trial.c -- see recorder/cost_trial.h. */
#include "recorder/cost_trial.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "record/callback.h"
#include "record/range.h"
#include "recorder/cost.h"
#include "segment/op_cost.h"

/* Of CPU time: on a loaded host the thread may wait for longer than that in its first round. */
static const uint64_t CPU_LIMIT_NS = 1000000;

enum { DISPATCH_RANGES = 64 };

static struct opscope__snapshot *needed; /* registry lock: linked by next_stale, kept for ever */

static int nothing(const opscope_range *fn, void *user, void *context)
{
    (void)fn;
    (void)user;
    (void)context;
    return OPSCOPE_OK;
}

static int nothing_yet(const opscope_range *fn, void *user, void **context)
{
    (void)fn;
    (void)user;
    (void)context;
    return OPSCOPE_OK;
}

static const struct opscope__leaf plain;
static struct opscope__callback leaf = {
    .spec = {.start = nothing_yet, .end = nothing, .sampling_prob = 1.0}, .leaf = &plain};

bool opscope__cost_trial_begin(opscope__cost_trial *trial)
{
    struct opscope__thread *thread = opscope__thread_self();
    if (thread == NULL || opscope__hot.running != NULL) {
        return false;
    }
    /* A snapshot without a thread, which replaces this thread's own. */
    struct opscope__snapshot *snapshot =
        calloc(1, sizeof *snapshot + sizeof(struct opscope__callback *));
    if (snapshot == NULL) {
        return false;
    }
    snapshot->owner = thread;
    snapshot->thread_id = thread->id;
    snapshot->count = 1;
    snapshot->callbacks[0] = &leaf;
    for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
        snapshot->scope_slots[scope] =
            (struct opscope__scope_slot){.always = 1, .armed = 1, .only = &leaf, .solo = &leaf};
    }
    *trial = (opscope__cost_trial){.snapshot = snapshot,
                                   .end_cpu_ns = opscope__thread_cpu_ns() + CPU_LIMIT_NS,
                                   .least_ticks = {UINT64_MAX, UINT64_MAX}};
    trial->was_recording =
        opscope_recording_set(false); /* a disturbed round is not recorded either */
    opscope__cost_trial_set(trial, false);
    return true;
}

void opscope__cost_trial_set(opscope__cost_trial *trial, bool is_seen)
{
    struct opscope__hot *hot = &opscope__hot;
    trial->is_seen = is_seen;
    trial->snapshot->version = hot->version = opscope__load_relaxed(&opscope__version);
    hot->solo = is_seen ? trial->snapshot : NULL;
    for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
        hot->skip[scope] = is_seen ? 1 : UINT64_MAX;
    }
}

bool opscope__cost_trial_start(opscope__cost_trial *trial)
{
    const bool is_late = opscope__thread_cpu_ns() >= trial->end_cpu_ns;
    trial->start_ticks = opscope__ticks();
    return !is_late;
}

void opscope__cost_trial_stop(opscope__cost_trial *trial)
{
    const uint64_t ticks = opscope__ticks() - trial->start_ticks;
    const struct opscope__hot *hot = &opscope__hot;
    const bool is_disturbed = hot->version != trial->snapshot->version ||
                              hot->version != opscope__load_relaxed(&opscope__version) ||
                              hot->solo != (trial->is_seen ? trial->snapshot : NULL);
    uint64_t *least = &trial->least_ticks[trial->is_seen];
    if (!is_disturbed && ticks < *least) {
        *least = ticks;
    }
}

/* Keeps the snapshot: other code may have opened a range meanwhile that is still open and needs
 * it. */
static void give_up(struct opscope__snapshot *snapshot)
{
    opscope__registry_lock();
    const bool is_needed = opscope__snapshot_open_total(snapshot) != 0;
    if (is_needed) {
        snapshot->next_stale = needed;
        needed = snapshot;
    }
    opscope__registry_unlock();
    if (!is_needed) {
        free(snapshot);
    }
}

uint64_t opscope__cost_trial_end(opscope__cost_trial *trial, uint32_t count)
{
    const uint64_t unseen = trial->least_ticks[false], seen = trial->least_ticks[true];
    opscope__hot_invalidate(); /* the previous state may be gone */
    (void)opscope_recording_set(trial->was_recording);
    give_up(trial->snapshot);
    trial->snapshot = NULL;
    if (seen == UINT64_MAX || unseen == UINT64_MAX || seen <= unseen) {
        return 0;
    }
    opscope__clock clock;
    opscope__clock_start(&clock);
    const double ps = (double)(seen - unseen) / count * 1e12 / (double)clock.ticks_per_second;
    return ps < OPSCOPE__COST_LIMIT_PS ? (uint64_t)ps : 0;
}

double opscope__cost_trial_dispatch_ticks(void)
{
    return (double)opscope__range_cost_ticks(&leaf.spec, opscope_op_other(), DISPATCH_RANGES) /
           DISPATCH_RANGES;
}
