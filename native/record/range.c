/* record/range.c -- opens and closes ranges that a callback may observe. The countdown before that
 * is inline, in opscope/range_inline.h. */
#include "record/range.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "base/fence.h"
#include "base/hot.h"
#include "record/callback.h"
#include "record/observer.h"

enum { FEW_CONTEXTS = 2, COST_ROUNDS = 5 };

static uint64_t callback_errors; /* add_relaxed by any thread; load_relaxed by readers */

static void OPSCOPE__COLD count_error(void)
{
    opscope__add_relaxed(&callback_errors, 1);
    opscope__observers_callback_failed();
}

uint64_t opscope_callback_errors(void)
{
    return opscope__load_relaxed(&callback_errors);
}

/* ---- what a callback may ask ------------------------------------------------------------------ */

uint64_t opscope_fn_thread_id(const opscope_range *fn)
{
    return fn->snapshot->thread_id;
}

uint64_t opscope_fn_handle(const opscope_range *fn)
{
    return (fn->fired & fn->snapshot->needs_ids) != 0 ? fn->handle : 0;
}

void opscope_range_fail(opscope_range *range)
{
    if (range->snapshot != NULL) {
        range->failed |= OPSCOPE__FAILED;
    }
}

bool opscope_range_failed(const opscope_range *range)
{
    return range->snapshot != NULL && (range->failed & OPSCOPE__FAILED) != 0;
}

/* ---- open ---------------------------------------------------------------------------------- */

/* The array with the contexts of the fired callbacks. */
static void **contexts_of(opscope_range *range)
{
    return __builtin_popcountll(range->fired) > FEW_CONTEXTS ? range->contexts[0] : range->contexts;
}

static void run_starts(opscope_range *range)
{
    struct opscope__callback **callbacks = range->snapshot->callbacks;
    void **context = contexts_of(range);
    for (uint64_t rest = range->fired; rest != 0; rest &= rest - 1, context++) {
        const struct opscope__callback *callback = callbacks[__builtin_ctzll(rest)];
        *context = NULL;
        if (callback->spec.start == NULL) {
            continue;
        }
        opscope__hot.running = callback;
        if (__builtin_expect(callback->spec.start(range, callback->spec.user, context) != 0, 0)) {
            *context = NULL;
            count_error();
        }
    }
    opscope__hot.running = NULL;
}

/* Counts the range as open; true if `snapshot` is still current. See the table in
 * record/callback.h. */
static bool claim(struct opscope__snapshot *snapshot)
{
    /* Partner: the acquire in opscope__snapshot_open_total. The thread is the only writer, so a
     * plain addition suffices. */
    opscope__store_relaxed(&snapshot->open_count, snapshot->open_count + 1);
    opscope__fence_light();
    if (__builtin_expect(opscope__load_relaxed(&opscope__version) == snapshot->version, 1)) {
        return true;
    }
    opscope__store_release(&snapshot->open_count, snapshot->open_count - 1);
    return false;
}

static uint64_t draw(struct opscope__snapshot *snapshot, opscope_scope scope,
                     struct opscope__thread *thread)
{
    const struct opscope__scope_slot *slot = &snapshot->scope_slots[scope];
    if (__builtin_expect(slot->sampled == 0, 1)) {
        opscope__hot.skip[scope] = slot->armed;
        return slot->always;
    }
    return opscope__scope_slot_draw(snapshot, scope, &thread->random, &opscope__hot.skip[scope]);
}

/* The callbacks that fire for this range: their bits, with the claimed snapshot in *out; or 0, with
 * *out unset. */
static uint64_t choose(opscope_scope scope, struct opscope__snapshot **out)
{
    struct opscope__hot *hot = &opscope__hot;
    for (;;) {
        if (hot->version != opscope__load_relaxed(&opscope__version)) {
            if (opscope__thread_refresh() == NULL || --hot->skip[scope] != 0) {
                return 0;
            }
        }
        struct opscope__thread *thread = hot->thread;
        if (thread == NULL || thread->snapshot == NULL) {
            hot->skip[scope] = UINT64_MAX;
            return 0;
        }
        struct opscope__scope_slot *slot = &thread->snapshot->scope_slots[scope];
        if (__builtin_expect(slot->poll_in != 0 && slot->poll_in == slot->armed, 0)) {
            const uint64_t version = hot->version;
            opscope__scope_slot_poll(thread->snapshot, slot);
            if (version != opscope__load_relaxed(&opscope__version)) {
                opscope__hot_invalidate(); /* no countdown was drawn yet */
                continue;
            }
        }
        uint64_t fired = draw(thread->snapshot, scope, thread);
        /* Operators that a callback runs are not recorded: their draws are discarded. */
        if (fired == 0 || opscope__hot.running != NULL) {
            return 0;
        }
        if (claim(thread->snapshot)) {
            *out = thread->snapshot;
            return fired;
        }
        opscope__hot_invalidate();
    }
}

/* Makes room for the contexts of all callbacks that fire; false if memory ran out. */
static bool hold_contexts(opscope_range *range)
{
    int count = __builtin_popcountll(range->fired);
    if (count <= FEW_CONTEXTS) {
        return true;
    }
    range->contexts[0] = calloc((size_t)count, sizeof(void *));
    return range->contexts[0] != NULL;
}

static void OPSCOPE__COLD open_slow(opscope_range *range, const opscope_op *op,
                                    const opscope_range_info *info)
{
    struct opscope__snapshot *snapshot;
    range->snapshot = NULL;
    uint64_t fired = choose((opscope_scope)op->scope, &snapshot);
    if (fired == 0) {
        return;
    }
    struct opscope__thread *thread = opscope__hot.thread;
    range->fired = fired;
    if (!hold_contexts(range)) {
        opscope__store_release(&snapshot->open_count, snapshot->open_count - 1);
        return;
    }
    range->snapshot = snapshot;
    range->op = op;
    range->info = info;
    range->failed = 0;
    if (__builtin_expect((fired & snapshot->needs_ids) != 0, 0)) {
        range->handle = thread->id << 40 | ++thread->handle_count;
    }
    if (__builtin_expect((fired & snapshot->needs_inputs) != 0, 0)) {
        thread->inputs.count = 0;
        if (info != NULL && info->inputs != NULL) {
            opscope__values_box(&thread->inputs, info->inputs, info->inputs_arg);
        }
        thread->inputs_of = range;
    }
    if (thread->outputs_of == range) {
        thread->outputs_of =
            NULL; /* left by an earlier range at this address, which ended on another thread */
    }
    run_starts(range);
    thread->inputs_of = NULL;
}

/* The common case: one callback that needs nothing but the calls. Fills in the range, and returns
 * the slot with the callback, before its start and before a sampled one's next draw. Returns NULL,
 * and changes nothing, in any other case. It claims the snapshot as claim() does: a `solo` exists
 * only if light fences are compiler barriers. */
static inline const struct opscope__scope_slot *claim_solo(opscope_range *range,
                                                           const opscope_op *op,
                                                           const opscope_range_info *info)
{
    struct opscope__hot *hot = &opscope__hot;
    struct opscope__snapshot *snapshot = hot->solo;
    if (__builtin_expect(snapshot == NULL || hot->running != NULL, 0)) {
        return NULL;
    }
    const struct opscope__scope_slot *slot = &snapshot->scope_slots[op->scope];
    if (__builtin_expect(slot->solo == NULL, 0)) {
        return NULL;
    }
    opscope__store_relaxed(&snapshot->open_count, snapshot->open_count + 1);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(opscope__load_relaxed(&opscope__version) != snapshot->version, 0)) {
        opscope__store_release(&snapshot->open_count, snapshot->open_count - 1);
        return NULL;
    }
    hot->skip[op->scope] = 1;
    range->snapshot = snapshot;
    range->op = op;
    range->info = info;
    range->fired = slot->always | slot->sampled;
    range->failed = 0;
    range->contexts[0] = NULL;
    return slot;
}

/* The start of such a range, if its callback may fail or run operators: a program's own. */
static void OPSCOPE__COLD start_plain(opscope_range *range,
                                      const struct opscope__callback *callback)
{
    opscope__hot.running = callback;
    const int status = callback->spec.start(range, callback->spec.user, range->contexts);
    opscope__hot.running = NULL;
    if (__builtin_expect(status != 0, 0)) {
        range->contexts[0] = NULL;
        count_error();
    }
}

/* The start of such a range, if its callback is sampled: draws the next one first. */
static void OPSCOPE__COLD start_sampled(opscope_range *range,
                                        const struct opscope__callback *callback)
{
    struct opscope__hot *hot = &opscope__hot;
    const opscope_scope scope = (opscope_scope)range->op->scope;
    hot->skip[scope] = opscope__scope_slot_draw_solo(range->snapshot, scope, &hot->thread->random);
    if (callback->leaf == NULL) {
        start_plain(range, callback);
    } else {
        (void)callback->spec.start(range, callback->spec.user, range->contexts);
    }
}

/* Every call in here is the last, a jump, so that the common case saves no registers. */
void OPSCOPE__HOT opscope__range_open_slow(opscope_range *range, const opscope_op *op,
                                           const opscope_range_info *info)
{
    const struct opscope__scope_slot *slot = claim_solo(range, op, info);
    if (__builtin_expect(slot == NULL, 0)) {
        open_slow(range, op, info);
        return;
    }
    const struct opscope__callback *callback = slot->solo;
    if (__builtin_expect(slot->sampled != 0, 0)) {
        start_sampled(range, callback);
    } else if (__builtin_expect(callback->leaf == NULL, 0)) {
        start_plain(range, callback);
    } else {
        (void)callback->spec.start(range, callback->spec.user, range->contexts);
    }
}

/* ---- close --------------------------------------------------------------------------------- */

static void run_ends(opscope_range *range)
{
    struct opscope__callback **callbacks = range->snapshot->callbacks;
    void **context = contexts_of(range);
    /* A callback may close a range (its own, or one it opened itself); it is still running
     * afterwards. */
    const struct opscope__callback *running = opscope__hot.running;
    for (uint64_t rest = range->fired; rest != 0; rest &= rest - 1, context++) {
        const struct opscope__callback *callback = callbacks[__builtin_ctzll(rest)];
        if (callback->spec.end == NULL) {
            continue;
        }
        opscope__hot.running = callback;
        if (__builtin_expect(callback->spec.end(range, callback->spec.user, *context) != 0, 0)) {
            count_error();
        }
    }
    opscope__hot.running = running;
}

/* Closes an async range on another thread than its opener, or after its thread ended. */
static void close_elsewhere(struct opscope__snapshot *snapshot)
{
    opscope__registry_lock();
    snapshot->closed_elsewhere_count++;
    opscope__registry_unlock();
    opscope__snapshots_sweep(NULL);
}

/* All other cases: several callbacks, a callback without an end, outputs, a stale snapshot, another
 * thread than the opener. */
static void OPSCOPE__COLD close_slow(opscope_range *range)
{
    struct opscope__thread *thread = opscope__thread_self();
    if (thread == NULL) {
        return;
    }
    struct opscope__snapshot *snapshot = range->snapshot;
    run_ends(range);
    void **contexts = contexts_of(range);
    if (contexts != range->contexts) {
        free(contexts);
    }
    range->snapshot = NULL;
    if (thread->outputs_of == range) {
        thread->outputs_of = NULL;
    }
    if (opscope__load_relaxed(&snapshot->owner) != thread) {
        close_elsewhere(snapshot);
        return;
    }
    /* Partner: the acquire in opscope__snapshot_open_total. Afterwards only this thread may free
     * `snapshot`, because it owns it. */
    opscope__store_release(&snapshot->open_count, snapshot->open_count - 1);
    if (snapshot != thread->snapshot) {
        opscope__snapshots_sweep(thread);
    }
}

bool opscope__range_lose(opscope_range *range)
{
    void **context = contexts_of(range);
    range->failed |= OPSCOPE__LOST;
    for (uint64_t rest = range->fired; rest != 0; rest &= rest - 1, context++) {
        const struct opscope__callback *callback =
            range->snapshot->callbacks[__builtin_ctzll(rest)];
        if (callback->leaf != NULL && callback->leaf->lose != NULL) {
            return callback->leaf->lose(range, *context);
        }
    }
    return false;
}

static void OPSCOPE__COLD end_solo(opscope_range *range, const struct opscope__callback *callback)
{
    struct opscope__snapshot *snapshot = range->snapshot;
    opscope__hot.running = callback;
    int status = callback->spec.end(range, callback->spec.user, range->contexts[0]);
    opscope__hot.running = NULL;
    if (__builtin_expect(status != 0, 0)) {
        count_error();
    }
    range->snapshot = NULL;
    /* Partner: the acquire in opscope__snapshot_open_total. */
    opscope__store_release(&snapshot->open_count, snapshot->open_count - 1);
}

void OPSCOPE__HOT opscope__range_close_slow(opscope_range *range)
{
    const struct opscope__hot *hot = &opscope__hot;
    struct opscope__snapshot *snapshot = range->snapshot;
    const struct opscope__callback *callback = NULL;
    /* The common case: as in claim_solo, with the snapshot still current. The slots of another
     * thread's snapshot are that thread's. */
    if (__builtin_expect(snapshot == hot->solo && hot->running == NULL, 1)) {
        callback = snapshot->scope_slots[range->op->scope].solo;
    }
    if (__builtin_expect(callback == NULL, 0)) {
        close_slow(range);
    } else if (callback->leaf != NULL) {
        /* No remover waits for a leaf, so the count may be decremented before its end. */
        range->snapshot = NULL;
        opscope__store_release(&snapshot->open_count, snapshot->open_count - 1);
        (void)callback->spec.end(range, callback->spec.user, range->contexts[0]);
    } else {
        end_solo(range, callback);
    }
}

/* ---- what a range costs --------------------------------------------------------------------- */

uint64_t opscope__range_cost_ticks(const opscope_callback *spec, const opscope_op *op,
                                   uint32_t count)
{
    struct opscope__snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (snapshot == NULL) {
        return 0;
    }
    static const struct opscope__leaf plain;
    struct opscope__callback leaf = {.spec = *spec, .leaf = &plain};
    snapshot->version = opscope__load_relaxed(&opscope__version);
    snapshot->scope_slots[op->scope] =
        (struct opscope__scope_slot){.always = 1, .armed = 1, .only = &leaf, .solo = &leaf};
    /* A snapshot without a thread replaces this thread's own during the loop. */
    struct opscope__hot *hot = &opscope__hot;
    const struct opscope__hot before = *hot;
    hot->solo = snapshot;
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < COST_ROUNDS; round++) {
        opscope_range range;
        uint32_t done = 0;
        uint64_t start = opscope__ticks();
        while (done < count && claim_solo(&range, op, NULL) != NULL) {
            (void)spec->start(&range, spec->user, range.contexts);
            opscope__range_close_slow(&range);
            done++;
        }
        uint64_t ticks = opscope__ticks() - start;
        least = done == count && ticks < least ? ticks : least;
    }
    *hot = before;
    free(snapshot);
    return least != UINT64_MAX ? least : 0;
}
