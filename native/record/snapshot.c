/* record/snapshot.c -- builds a thread's snapshot from the enabled callbacks, and advances its
 * countdowns. record/snapshot_life.c manages its lifetime. */
#include <stdlib.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "record/callback.h"

enum { POLL_EVERY_FIRST = 16, POLL_EVERY_LIMIT = 65536, CLOCK_READS_PER_POLL = 1000 };

/* The countdown of ranges that are only counted: never over, but no bridge takes it for that of a
 * thread whose ranges nobody wants. */
static const uint64_t COUNTING = UINT64_MAX / 4;

static bool concerns(const struct opscope__callback *callback, int scope)
{
    return callback->spec.scopes == 0 || (callback->spec.scopes >> scope & 1u) != 0;
}

uint64_t opscope__scope_slot_arm(struct opscope__scope_slot *slot, uint64_t countdown)
{
    const bool is_poll = slot->poll_in != 0 && slot->poll_in <= countdown;
    slot->armed = is_poll ? slot->poll_in : countdown;
    slot->solo = is_poll ? NULL : slot->only;
    return slot->armed;
}

static void set_slot(struct opscope__snapshot *snapshot, int scope, opscope__random *random)
{
    struct opscope__scope_slot *slot = &snapshot->scope_slots[scope];
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < snapshot->count; i++) {
        const struct opscope__callback *callback = snapshot->callbacks[i];
        double prob = callback->spec.sampling_prob;
        if (!concerns(callback, scope) || prob <= 0.0) {
            continue;
        }
        if (callback->leaf != NULL && callback->leaf->only_counts) {
            snapshot->counting = callback;
            least = least < COUNTING ? least : COUNTING;
            continue;
        }
        if (prob >= 1.0) {
            slot->always |= (uint64_t)1 << i;
            least = 1;
            continue;
        }
        uint64_t countdown = opscope__random_countdown(random, prob);
        snapshot->countdowns[(uint32_t)scope * snapshot->count + i] = countdown;
        slot->sampled |= (uint64_t)1 << i;
        if (callback->leaf != NULL && callback->leaf->poll != NULL) {
            snapshot->polled = callback->leaf;
            slot->poll_in = slot->poll_every = POLL_EVERY_FIRST;
        }
        least = countdown < least ? countdown : least;
    }
    const uint64_t fires = slot->always | slot->sampled;
    if (fires != 0 && (fires & (fires - 1)) == 0 &&
        ((snapshot->needs_inputs | snapshot->needs_outputs | snapshot->needs_ids) & fires) == 0) {
        struct opscope__callback *only = snapshot->callbacks[__builtin_ctzll(fires)];
        slot->only = only->spec.start != NULL && only->spec.end != NULL ? only : NULL;
    }
    (void)opscope__scope_slot_arm(slot, least);
}

struct opscope__snapshot *opscope__snapshot_create(struct opscope__thread *thread, bool *out_empty)
{
    struct opscope__callback *wanted[OPSCOPE__CALLBACK_LIMIT];
    uint32_t count = opscope__callbacks_enabled(thread, wanted);
    *out_empty = count == 0 || !thread->recording;
    if (*out_empty) {
        return NULL;
    }
    size_t head = sizeof(struct opscope__snapshot) + count * sizeof wanted[0];
    struct opscope__snapshot *snapshot =
        calloc(1, head + (size_t)OPSCOPE_SCOPE_COUNT * count * sizeof snapshot->countdowns[0]);
    if (snapshot == NULL) {
        return NULL;
    }
    snapshot->owner = thread;
    snapshot->version = opscope__version;
    snapshot->thread_id = thread->id;
    snapshot->count = count;
    snapshot->countdowns = (uint64_t *)(void *)((char *)snapshot + head);
    for (uint32_t i = 0; i < count; i++) {
        wanted[i]->reference_count++;
        snapshot->callbacks[i] = wanted[i];
        snapshot->needs_inputs |= (uint64_t)wanted[i]->spec.needs_inputs << i;
        snapshot->needs_outputs |= (uint64_t)wanted[i]->spec.needs_outputs << i;
        snapshot->needs_ids |= (uint64_t)wanted[i]->spec.needs_ids << i;
    }
    for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
        set_slot(snapshot, scope, &thread->random);
    }
    return snapshot;
}

void opscope__snapshot_destroy(struct opscope__snapshot *snapshot, struct opscope__callback **dead)
{
    for (uint32_t i = 0; i < snapshot->count; i++) {
        opscope__callback_release(snapshot->callbacks[i], dead);
    }
    free(snapshot);
}

uint64_t opscope__scope_slot_draw_solo(struct opscope__snapshot *snapshot, opscope_scope scope,
                                       opscope__random *random)
{
    struct opscope__scope_slot *slot = &snapshot->scope_slots[scope];
    const uint64_t countdown = opscope__random_countdown(random, slot->only->spec.sampling_prob);
    const uint32_t only = (uint32_t)__builtin_ctzll(slot->sampled);
    snapshot->countdowns[(uint32_t)scope * snapshot->count + only] = countdown;
    if (slot->poll_in != 0) {
        slot->poll_in -= slot->armed;
    }
    return opscope__scope_slot_arm(slot, countdown);
}

uint64_t opscope__scope_slot_draw(struct opscope__snapshot *snapshot, opscope_scope scope,
                                  opscope__random *random, uint64_t *out_skip)
{
    struct opscope__scope_slot *slot = &snapshot->scope_slots[scope];
    uint64_t *countdowns = &snapshot->countdowns[(uint32_t)scope * snapshot->count];
    uint64_t fired = slot->always;
    uint64_t least = slot->always != 0 ? 1 : UINT64_MAX;
    if (slot->poll_in != 0) {
        slot->poll_in -= slot->armed;
    }
    for (uint64_t rest = slot->sampled; rest != 0; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);
        countdowns[i] -= slot->armed;
        if (countdowns[i] == 0) {
            fired |= (uint64_t)1 << i;
            countdowns[i] =
                opscope__random_countdown(random, snapshot->callbacks[i]->spec.sampling_prob);
        }
        least = countdowns[i] < least ? countdowns[i] : least;
    }
    *out_skip = opscope__scope_slot_arm(slot, least);
    return fired;
}

/* ---- polls ---------------------------------------------------------------- */

void opscope__scope_slot_poll(struct opscope__snapshot *snapshot, struct opscope__scope_slot *slot)
{
    const uint64_t period = opscope__load_relaxed(snapshot->polled->poll_period_ticks);
    const uint64_t wanted = period / CLOCK_READS_PER_POLL;
    const uint64_t now = opscope__ticks();
    const uint64_t took = now - slot->poll_start_ticks;
    if (slot->poll_start_ticks != 0 && took > 2 * wanted) {
        slot->poll_every = slot->poll_every * wanted / took;
        slot->poll_every = slot->poll_every != 0 ? slot->poll_every : 1;
    } else if (took < wanted / 2 && slot->poll_every < POLL_EVERY_LIMIT) {
        slot->poll_every *= 2;
    }
    slot->poll_start_ticks = now;
    slot->poll_in = slot->armed + slot->poll_every; /* the next draw subtracts `armed` */
    if (now >= slot->next_poll_ticks) {
        slot->next_poll_ticks = now + period;
        snapshot->polled->poll(now); /* last: the poll may free the slot */
    }
}
