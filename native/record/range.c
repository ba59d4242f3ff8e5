/* record/range.c -- what happens when a range opens that somebody may want to see, and its close.
 * The countdown before it is inline, in opscope/range_inline.h. */
#include "record/range.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "base/fence.h"
#include "base/hot.h"
#include "record/callback.h"
#include "record/recorder_state.h"

enum { FEW_CONTEXTS = 2, COST_ROUNDS = 5 };

static uint64_t callback_errors; /* add_relaxed by any thread; load_relaxed by readers */

static void OPSCOPE__SELDOM count_error(void)
{
    opscope__add_relaxed(&callback_errors, 1);
    opscope__recorder_callback_error();
}

uint64_t opscope_callback_errors(void)
{
    return opscope__load_relaxed(&callback_errors);
}

/* ---- what a callback may ask ------------------------------------------------------------------ */

uint64_t opscope_fn_thread_id(const opscope_range *fn)
{
    return fn->firing->thread_id;
}

uint64_t opscope_fn_handle(const opscope_range *fn)
{
    return (fn->fired & fn->firing->needs_ids) != 0 ? fn->handle : 0;
}

void opscope_range_fail(opscope_range *range)
{
    if (range->firing != NULL) {
        range->failed |= OPSCOPE__FAILED;
    }
}

bool opscope_range_failed(const opscope_range *range)
{
    return range->firing != NULL && (range->failed & OPSCOPE__FAILED) != 0;
}

/* ---- open ---------------------------------------------------------------------------------- */

/* Where the contexts of the fired callbacks are. */
static void **contexts_of(opscope_range *range)
{
    return __builtin_popcountll(range->fired) > FEW_CONTEXTS ? range->contexts[0] : range->contexts;
}

static void run_starts(opscope_range *range)
{
    struct opscope__callback **callbacks = range->firing->callbacks;
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

/* Whether `firing` may be used: see the table in record/callback.h. */
static bool claim(struct opscope__firing *firing)
{
    /* Partner: the acquire in opscope__firing_open_total; single writer, so a plain add will do. */
    opscope__store_relaxed(&firing->open_count, firing->open_count + 1);
    opscope__fence_light();
    if (__builtin_expect(opscope__load_relaxed(&opscope__version) == firing->version, 1)) {
        return true;
    }
    opscope__store_release(&firing->open_count, firing->open_count - 1);
    return false;
}

static uint64_t draw(struct opscope__firing *firing, opscope_scope scope,
                     struct opscope__thread *thread)
{
    const struct opscope__lane *lane = &firing->lanes[scope];
    if (__builtin_expect(lane->sampled == 0, 1)) {
        opscope__hot.skip[scope] = lane->armed;
        return lane->always;
    }
    return opscope__lane_draw(firing, scope, &thread->random, &opscope__hot.skip[scope]);
}

/* What fires for this range: 0, with *out unset, or the callbacks' bits and the claimed firing. */
static uint64_t choose(opscope_scope scope, struct opscope__firing **out)
{
    struct opscope__hot *hot = &opscope__hot;
    for (;;) {
        if (hot->version != opscope__load_relaxed(&opscope__version)) {
            if (opscope__thread_refresh() == NULL || --hot->skip[scope] != 0) {
                return 0;
            }
        }
        struct opscope__thread *thread = hot->thread;
        if (thread == NULL || thread->firing == NULL) {
            hot->skip[scope] = UINT64_MAX;
            return 0;
        }
        struct opscope__lane *lane = &thread->firing->lanes[scope];
        if (__builtin_expect(lane->look_in != 0 && lane->look_in == lane->armed, 0)) {
            const uint64_t version = hot->version;
            opscope__lane_look(lane);
            if (version != opscope__load_relaxed(&opscope__version)) {
                opscope__hot_invalidate(); /* nothing was drawn yet */
                continue;
            }
        }
        uint64_t fired = draw(thread->firing, scope, thread);
        /* Operators run by a callback are not recorded: their draws go nowhere. */
        if (fired == 0 || opscope__hot.running != NULL) {
            return 0;
        }
        if (claim(thread->firing)) {
            *out = thread->firing;
            return fired;
        }
        opscope__hot_invalidate();
    }
}

/* Room for the contexts of all that fires; false where memory ran out. */
static bool hold_contexts(opscope_range *range)
{
    int count = __builtin_popcountll(range->fired);
    if (count <= FEW_CONTEXTS) {
        return true;
    }
    range->contexts[0] = calloc((size_t)count, sizeof(void *));
    return range->contexts[0] != NULL;
}

/* The common case in few instructions: one callback that wants ranges and nothing else. Fills in
 * the range and returns the callback, its start not called yet; NULL, with nothing done, where this
 * is not the case. Its claim is that of claim(), light fences being free wherever there is a
 * `solo`. */
static inline struct opscope__callback *claim_solo(opscope_range *range, const opscope_op *op,
                                                   const opscope_range_info *info)
{
    struct opscope__hot *hot = &opscope__hot;
    struct opscope__firing *firing = hot->solo;
    if (__builtin_expect(firing == NULL || hot->running != NULL, 0)) {
        return NULL;
    }
    struct opscope__lane *lane = &firing->lanes[op->scope];
    struct opscope__callback *callback = lane->solo;
    if (__builtin_expect(callback == NULL, 0)) {
        return NULL;
    }
    opscope__store_relaxed(&firing->open_count, firing->open_count + 1);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(opscope__load_relaxed(&opscope__version) != firing->version, 0)) {
        opscope__store_release(&firing->open_count, firing->open_count - 1);
        return NULL;
    }
    hot->skip[op->scope] =
        __builtin_expect(lane->sampled == 0, 1)
            ? 1
            : opscope__lane_draw_solo(firing, (opscope_scope)op->scope, &hot->thread->random);
    range->firing = firing;
    range->op = op;
    range->info = info;
    range->fired = lane->always | lane->sampled;
    range->failed = 0;
    range->contexts[0] = NULL;
    return callback;
}

static void start_solo(opscope_range *range, const struct opscope__callback *callback)
{
    opscope__hot.running = callback;
    int status = callback->spec.start(range, callback->spec.user, range->contexts);
    opscope__hot.running = NULL;
    if (__builtin_expect(status != 0, 0)) {
        range->contexts[0] = NULL;
        count_error();
    }
}

static void OPSCOPE__SELDOM open_seldom(opscope_range *range, const opscope_op *op,
                                        const opscope_range_info *info)
{
    struct opscope__firing *firing;
    range->firing = NULL;
    uint64_t fired = choose((opscope_scope)op->scope, &firing);
    if (fired == 0) {
        return;
    }
    struct opscope__thread *thread = opscope__hot.thread;
    range->fired = fired;
    if (!hold_contexts(range)) {
        opscope__store_release(&firing->open_count, firing->open_count - 1);
        return;
    }
    range->firing = firing;
    range->op = op;
    range->info = info;
    range->failed = 0;
    if (__builtin_expect((fired & firing->needs_ids) != 0, 0)) {
        range->handle = thread->id << 40 | ++thread->handle_count;
    }
    if (__builtin_expect((fired & firing->needs_inputs) != 0, 0)) {
        thread->inputs.count = 0;
        if (info != NULL && info->inputs != NULL) {
            opscope__values_box(&thread->inputs, info->inputs, info->inputs_arg);
        }
        thread->inputs_of = range;
    }
    if (thread->outputs_of == range) {
        thread->outputs_of = NULL; /* of an earlier range here that ended on another thread */
    }
    run_starts(range);
    thread->inputs_of = NULL;
}

void OPSCOPE__HOT opscope__range_open_slow(opscope_range *range, const opscope_op *op,
                                           const opscope_range_info *info)
{
    struct opscope__callback *callback = claim_solo(range, op, info);
    if (__builtin_expect(callback == NULL, 0)) {
        open_seldom(range, op, info);
    } else if (callback->is_leaf) {
        (void)callback->spec.start(range, callback->spec.user, range->contexts);
    } else {
        start_solo(range, callback);
    }
}

/* ---- close --------------------------------------------------------------------------------- */

static void run_ends(opscope_range *range)
{
    struct opscope__callback **callbacks = range->firing->callbacks;
    void **context = contexts_of(range);
    /* A range closed inside a callback (its own, or one it opened itself) leaves that one running.
     */
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

/* The close of an async range by another thread than its opener, or after its thread ended. */
static void close_elsewhere(struct opscope__firing *firing)
{
    opscope__registry_lock();
    firing->closed_elsewhere_count++;
    opscope__registry_unlock();
    opscope__firing_sweep(NULL);
}

/* Everything but the common case: several callbacks or none of them with an end, outputs, a stale
 * firing, another thread than the opener. */
static void OPSCOPE__SELDOM close_seldom(opscope_range *range)
{
    struct opscope__thread *thread = opscope__thread_self();
    if (thread == NULL) {
        return;
    }
    struct opscope__firing *firing = range->firing;
    run_ends(range);
    void **contexts = contexts_of(range);
    if (contexts != range->contexts) {
        free(contexts);
    }
    range->firing = NULL;
    if (thread->outputs_of == range) {
        thread->outputs_of = NULL;
    }
    if (opscope__load_relaxed(&firing->owner) != thread) {
        close_elsewhere(firing);
        return;
    }
    /* Partner: the acquire in opscope__firing_open_total; after it `firing` may be freed only by
     * this thread, as it owns it. */
    opscope__store_release(&firing->open_count, firing->open_count - 1);
    if (firing != thread->firing) {
        opscope__firing_sweep(thread);
    }
}

bool opscope__range_lose(opscope_range *range)
{
    void **context = contexts_of(range);
    range->failed |= OPSCOPE__LOST;
    for (uint64_t rest = range->fired; rest != 0; rest &= rest - 1, context++) {
        const struct opscope__callback *callback = range->firing->callbacks[__builtin_ctzll(rest)];
        if (callback->spec.start == opscope__recorder_range_start) {
            return opscope__recorder_lose(range, *context);
        }
    }
    return false;
}

static void end_solo(opscope_range *range, const struct opscope__callback *callback)
{
    struct opscope__firing *firing = range->firing;
    opscope__hot.running = callback;
    int status = callback->spec.end(range, callback->spec.user, range->contexts[0]);
    opscope__hot.running = NULL;
    if (__builtin_expect(status != 0, 0)) {
        count_error();
    }
    range->firing = NULL;
    /* Partner: the acquire in opscope__firing_open_total. */
    opscope__store_release(&firing->open_count, firing->open_count - 1);
}

void OPSCOPE__HOT opscope__range_close_slow(opscope_range *range)
{
    const struct opscope__hot *hot = &opscope__hot;
    struct opscope__firing *firing = range->firing;
    const struct opscope__callback *callback = firing->lanes[range->op->scope].solo;
    /* The common case: as in claim_solo; and nothing has changed since. */
    if (__builtin_expect(firing != hot->solo || callback == NULL || hot->running != NULL, 0)) {
        close_seldom(range);
    } else if (callback->is_leaf) {
        /* Nobody waits for a leaf to be left, so the count may go down before its end. */
        range->firing = NULL;
        opscope__store_release(&firing->open_count, firing->open_count - 1);
        (void)callback->spec.end(range, callback->spec.user, range->contexts[0]);
    } else {
        end_solo(range, callback);
    }
}

/* ---- what a range costs --------------------------------------------------------------------- */

uint64_t opscope__range_cost_ticks(const opscope_callback *spec, const opscope_op *op,
                                   uint32_t count)
{
    struct opscope__firing *firing = calloc(1, sizeof *firing);
    if (firing == NULL) {
        return 0;
    }
    struct opscope__callback leaf = {.spec = *spec, .is_leaf = true};
    firing->version = opscope__load_relaxed(&opscope__version);
    firing->lanes[op->scope] =
        (struct opscope__lane){.always = 1, .armed = 1, .only = &leaf, .solo = &leaf};
    /* A firing of nobody's, in the place of this thread's own for the length of a loop. */
    struct opscope__hot *hot = &opscope__hot;
    const struct opscope__hot before = *hot;
    hot->solo = firing;
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < COST_ROUNDS; round++) {
        opscope_range range;
        uint32_t done = 0;
        uint64_t start = opscope__ticks();
        const struct opscope__callback *callback;
        while (done < count && (callback = claim_solo(&range, op, NULL)) != NULL) {
            (void)callback->spec.start(&range, callback->spec.user, range.contexts);
            opscope__range_close_slow(&range);
            done++;
        }
        uint64_t ticks = opscope__ticks() - start;
        least = done == count && ticks < least ? ticks : least;
    }
    *hot = before;
    free(firing);
    return least != UINT64_MAX ? least : 0;
}
