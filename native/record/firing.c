/* record/firing.c -- a thread's firing: how it is built from the callbacks that are enabled, and how its
 * countdowns go on. How long it lives is in record/thread.c. */
#include <stdlib.h>

#include "record/callback.h"

static bool concerns(const struct opscope__callback *callback, int scope)
{
    return callback->spec.scopes == 0 || (callback->spec.scopes >> scope & 1u) != 0;
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
        least = countdown < least ? countdown : least;
    }
    lane->armed = least;
    const uint64_t fires = lane->always | lane->sampled;
    if (fires != 0 && (fires & (fires - 1)) == 0 &&
        ((firing->needs_inputs | firing->needs_outputs | firing->needs_ids) & fires) == 0) {
        struct opscope__callback *only = firing->callbacks[__builtin_ctzll(fires)];
        lane->solo = only->spec.start != NULL && only->spec.end != NULL ? only : NULL;
    }
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
    const uint64_t countdown = opscope__random_countdown(random, lane->solo->spec.sampling_prob);
    const uint32_t only = (uint32_t)__builtin_ctzll(lane->sampled);
    firing->countdowns[(uint32_t)scope * firing->count + only] = countdown;
    lane->armed = countdown;
    return countdown;
}

uint64_t opscope__lane_draw(struct opscope__firing *firing, opscope_scope scope,
                            opscope__random *random, uint64_t *out_skip)
{
    struct opscope__lane *lane = &firing->lanes[scope];
    uint64_t *countdowns = &firing->countdowns[(uint32_t)scope * firing->count];
    uint64_t fired = lane->always;
    uint64_t least = lane->always != 0 ? 1 : UINT64_MAX;
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
    lane->armed = least;
    *out_skip = least;
    return fired;
}
