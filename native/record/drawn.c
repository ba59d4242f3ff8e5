/* record/drawn.c -- ranges that a framework has drawn with its own probability. */
#include "record/callback.h"

#include "base/atomics.h"
#include "base/clock.h"

/* May change callbacks, and free the slot. */
static void poll_if_due(const struct opscope__snapshot *snapshot, struct opscope__scope_slot *slot)
{
    const uint64_t now = opscope__ticks();
    if (snapshot->polled != NULL && now >= slot->next_poll_ticks) {
        slot->next_poll_ticks = now + opscope__load_relaxed(snapshot->polled->poll_period_ticks);
        snapshot->polled->poll(now);
    }
}

bool opscope__range_was_drawn(opscope_scope scope)
{
    struct opscope__hot *hot = &opscope__hot;
    if (hot->version != opscope__load_relaxed(&opscope__version)) {
        (void)opscope_has_callbacks(); /* resets the countdowns */
    }
    struct opscope__thread *thread = hot->thread;
    struct opscope__snapshot *snapshot = thread != NULL ? thread->snapshot : NULL;
    if (snapshot == NULL) {
        return false;
    }
    struct opscope__scope_slot *slot = &snapshot->scope_slots[scope];
    if ((slot->always | slot->sampled) == 0) {
        /* Of 1 / sampling_prob ranges, the framework draws one, on average. */
        if (snapshot->counting != NULL) {
            const uint64_t count = (uint64_t)(1.0 / snapshot->counting->spec.sampling_prob);
            opscope__store_relaxed(&thread->counted, thread->counted + count);
        }
        return false;
    }
    if (slot->only != NULL && slot->sampled != 0) {
        const double prob = slot->only->spec.sampling_prob;
        if (prob < OPSCOPE__DRAWN_PROB_LEAST &&
            opscope__random_unit(&thread->random) >= prob / OPSCOPE__DRAWN_PROB_LEAST) {
            poll_if_due(snapshot, slot);
            return false;
        }
        snapshot->countdowns[(uint32_t)scope * snapshot->count +
                             (uint32_t)__builtin_ctzll(slot->sampled)] = 1;
        slot->poll_in += slot->poll_in == 1; /* the skip ends at the range that fires */
        (void)opscope__scope_slot_arm(slot, 1);
    }
    hot->skip[scope] = 1;
    return true;
}
