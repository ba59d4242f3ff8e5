/* record/cost_trial.c -- see record/cost_trial.h. */
#include "record/cost_trial.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "record/callback.h"
#include "record/cost.h"

static const uint64_t TIME_LIMIT_NS = 1000000;

static struct opscope__firing *needed; /* registry lock: by next_stale, for ever */

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

static struct opscope__callback leaf = {
    .spec = {.start = nothing_yet, .end = nothing, .sampling_prob = 1.0}, .is_leaf = true};

bool opscope__cost_trial_begin(opscope__cost_trial *trial)
{
    struct opscope__thread *thread = opscope__thread_self();
    if (thread == NULL || opscope__hot.running != NULL) {
        return false;
    }
    /* A firing of nobody's, in the place of this thread's own. */
    struct opscope__firing *firing = calloc(1, sizeof *firing + sizeof(struct opscope__callback *));
    if (firing == NULL) {
        return false;
    }
    firing->owner = thread;
    firing->thread_id = thread->id;
    firing->count = 1;
    firing->callbacks[0] = &leaf;
    for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
        firing->lanes[scope] =
            (struct opscope__lane){.always = 1, .armed = 1, .only = &leaf, .solo = &leaf};
    }
    *trial = (opscope__cost_trial){.firing = firing,
                                   .end_ns = opscope__monotonic_ns() + TIME_LIMIT_NS,
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
    trial->firing->version = hot->version = opscope__load_relaxed(&opscope__version);
    hot->solo = is_seen ? trial->firing : NULL;
    for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
        hot->skip[scope] = is_seen ? 1 : UINT64_MAX;
    }
}

bool opscope__cost_trial_start(opscope__cost_trial *trial)
{
    const bool is_late = opscope__monotonic_ns() >= trial->end_ns;
    trial->start_ticks = opscope__ticks();
    return !is_late;
}

void opscope__cost_trial_stop(opscope__cost_trial *trial)
{
    const uint64_t ticks = opscope__ticks() - trial->start_ticks;
    const struct opscope__hot *hot = &opscope__hot;
    const bool is_disturbed = hot->version != trial->firing->version ||
                              hot->version != opscope__load_relaxed(&opscope__version) ||
                              hot->solo != (trial->is_seen ? trial->firing : NULL);
    uint64_t *least = &trial->least_ticks[trial->is_seen];
    if (!is_disturbed && ticks < *least) {
        *least = ticks;
    }
}

/* Something else may have opened a range meanwhile that is still to be closed: it needs the firing.
 */
static void give_up(struct opscope__firing *firing)
{
    opscope__registry_lock();
    const bool is_needed = opscope__firing_open_total(firing) != 0;
    if (is_needed) {
        firing->next_stale = needed;
        needed = firing;
    }
    opscope__registry_unlock();
    if (!is_needed) {
        free(firing);
    }
}

uint64_t opscope__cost_trial_end(opscope__cost_trial *trial, uint32_t count)
{
    const uint64_t unseen = trial->least_ticks[false], seen = trial->least_ticks[true];
    opscope__hot_invalidate(); /* what it was may be gone */
    (void)opscope_recording_set(trial->was_recording);
    give_up(trial->firing);
    trial->firing = NULL;
    if (seen == UINT64_MAX || unseen == UINT64_MAX || seen <= unseen) {
        return 0;
    }
    opscope__clock clock;
    opscope__clock_start(&clock);
    const double ps = (double)(seen - unseen) / count * 1e12 / (double)clock.ticks_per_second;
    return ps < OPSCOPE__COST_LIMIT_PS ? (uint64_t)ps : 0;
}
