/* record/firing.c -- a thread's firing: how it is built from the callbacks that are enabled, and
 * how its countdowns go on. How long it lives is in record/thread.c. */
#include <stdlib.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "record/callback.h"
#include "record/control.h"
#include "record/recorder_state.h"

enum { LOOK_EVERY_FIRST = 16, LOOK_EVERY_LIMIT = 65536, LOOKS_TO_A_GLANCE = 1000 };

static bool concerns(const struct opscope__callback *callback, int scope)
{
    return callback->spec.scopes == 0 || (callback->spec.scopes >> scope & 1u) != 0;
}

/* Sets the lane for a skip to the next countdown's end, or to the next look before it. */
static uint64_t arm(struct opscope__lane *lane, uint64_t countdown)
{
    const bool is_look = lane->look_in != 0 && lane->look_in <= countdown;
    lane->armed = is_look ? lane->look_in : countdown;
    lane->solo = is_look ? NULL : lane->only;
    return lane->armed;
}

static void set_lane(struct opscope__firing *firing, int scope, opscope__random *random)
{
    struct opscope__lane *lane = &firing->lanes[scope];
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < firing->count; i++) {
        const struct opscope__callback *callback = firing->callbacks[i];
        double prob = callback->spec.sampling_prob;
        if (!concerns(callback, scope) || prob <= 0.0) {
            continue;
        }
        if (prob >= 1.0) {
            lane->always |= (uint64_t)1 << i;
            least = 1;
            continue;
        }
        uint64_t countdown = opscope__random_countdown(random, prob);
        firing->countdowns[(uint32_t)scope * firing->count + i] = countdown;
        lane->sampled |= (uint64_t)1 << i;
        if (callback->is_leaf) {
            lane->look_in = lane->look_every = LOOK_EVERY_FIRST;
        }
        least = countdown < least ? countdown : least;
    }
    const uint64_t fires = lane->always | lane->sampled;
    if (fires != 0 && (fires & (fires - 1)) == 0 &&
        ((firing->needs_inputs | firing->needs_outputs | firing->needs_ids) & fires) == 0) {
        struct opscope__callback *only = firing->callbacks[__builtin_ctzll(fires)];
        lane->only = only->spec.start != NULL && only->spec.end != NULL ? only : NULL;
    }
    (void)arm(lane, least);
}

struct opscope__firing *opscope__firing_create(struct opscope__thread *thread, bool *out_empty)
{
    struct opscope__callback *wanted[OPSCOPE__CALLBACK_LIMIT];
    uint32_t count = opscope__callbacks_enabled(thread, wanted);
    *out_empty = count == 0 || !thread->recording;
    if (*out_empty) {
        return NULL;
    }
    size_t head = sizeof(struct opscope__firing) + count * sizeof wanted[0];
    struct opscope__firing *firing =
        calloc(1, head + (size_t)OPSCOPE_SCOPE_COUNT * count * sizeof firing->countdowns[0]);
    if (firing == NULL) {
        return NULL;
    }
    firing->owner = thread;
    firing->version = opscope__version;
    firing->thread_id = thread->id;
    firing->count = count;
    firing->countdowns = (uint64_t *)(void *)((char *)firing + head);
    for (uint32_t i = 0; i < count; i++) {
        wanted[i]->reference_count++;
        firing->callbacks[i] = wanted[i];
        firing->needs_inputs |= (uint64_t)wanted[i]->spec.needs_inputs << i;
        firing->needs_outputs |= (uint64_t)wanted[i]->spec.needs_outputs << i;
        firing->needs_ids |= (uint64_t)wanted[i]->spec.needs_ids << i;
    }
    for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
        set_lane(firing, scope, &thread->random);
    }
    return firing;
}

void opscope__firing_destroy(struct opscope__firing *firing, struct opscope__callback **dead)
{
    for (uint32_t i = 0; i < firing->count; i++) {
        opscope__callback_release(firing->callbacks[i], dead);
    }
    free(firing);
}

uint64_t opscope__lane_draw_solo(struct opscope__firing *firing, opscope_scope scope,
                                 opscope__random *random)
{
    struct opscope__lane *lane = &firing->lanes[scope];
    const uint64_t countdown = opscope__random_countdown(random, lane->only->spec.sampling_prob);
    const uint32_t only = (uint32_t)__builtin_ctzll(lane->sampled);
    firing->countdowns[(uint32_t)scope * firing->count + only] = countdown;
    if (lane->look_in != 0) {
        lane->look_in -= lane->armed;
    }
    return arm(lane, countdown);
}

uint64_t opscope__lane_draw(struct opscope__firing *firing, opscope_scope scope,
                            opscope__random *random, uint64_t *out_skip)
{
    struct opscope__lane *lane = &firing->lanes[scope];
    uint64_t *countdowns = &firing->countdowns[(uint32_t)scope * firing->count];
    uint64_t fired = lane->always;
    uint64_t least = lane->always != 0 ? 1 : UINT64_MAX;
    if (lane->look_in != 0) {
        lane->look_in -= lane->armed;
    }
    for (uint64_t rest = lane->sampled; rest != 0; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);
        countdowns[i] -= lane->armed;
        if (countdowns[i] == 0) {
            fired |= (uint64_t)1 << i;
            countdowns[i] =
                opscope__random_countdown(random, firing->callbacks[i]->spec.sampling_prob);
        }
        least = countdowns[i] < least ? countdowns[i] : least;
    }
    *out_skip = arm(lane, least);
    return fired;
}

/* ---- looks at the control block ---------------------------------------------------------------- */

void opscope__lane_look(struct opscope__lane *lane)
{
    const uint64_t period = opscope__load_relaxed(&opscope__recorder.look_period_ticks);
    const uint64_t wanted = period / LOOKS_TO_A_GLANCE;
    const uint64_t now = opscope__ticks();
    const uint64_t took = now - lane->look_start_ticks;
    if (lane->look_start_ticks != 0 && took > 2 * wanted) {
        lane->look_every = lane->look_every * wanted / took;
        lane->look_every = lane->look_every != 0 ? lane->look_every : 1;
    } else if (took < wanted / 2 && lane->look_every < LOOK_EVERY_LIMIT) {
        lane->look_every *= 2;
    }
    lane->look_start_ticks = now;
    lane->look_in = lane->armed + lane->look_every; /* the draw that follows takes `armed` off */
    if (now >= lane->look_ticks) {
        lane->look_ticks = now + period;
        (void)opscope__control_poll(NULL, now); /* last: the lane may be gone then */
    }
}

/* ---- what a framework draws --------------------------------------------------------------------- */

bool opscope__range_was_drawn(opscope_scope scope)
{
    struct opscope__hot *hot = &opscope__hot;
    if (hot->version != opscope__load_relaxed(&opscope__version)) {
        (void)opscope_has_callbacks(); /* sets the countdowns anew */
    }
    struct opscope__thread *thread = hot->thread;
    struct opscope__firing *firing = thread != NULL ? thread->firing : NULL;
    if (firing == NULL) {
        return false;
    }
    struct opscope__lane *lane = &firing->lanes[scope];
    if (lane->only != NULL && lane->sampled != 0) {
        const double prob = lane->only->spec.sampling_prob;
        if (prob < OPSCOPE__DRAWN_PROB_LEAST &&
            opscope__random_unit(&thread->random) >= prob / OPSCOPE__DRAWN_PROB_LEAST) {
            uint64_t now = opscope__ticks();
            if (now >= lane->look_ticks) {
                lane->look_ticks =
                    now + opscope__load_relaxed(&opscope__recorder.look_period_ticks);
                (void)opscope__control_poll(NULL, now);
            }
            return false;
        }
        firing->countdowns[(uint32_t)scope * firing->count +
                           (uint32_t)__builtin_ctzll(lane->sampled)] = 1;
        lane->look_in += lane->look_in == 1; /* the skip ends with the firing */
        (void)arm(lane, 1);
    }
    hot->skip[scope] = 1;
    return true;
}
