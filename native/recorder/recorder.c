/* recorder/recorder.c -- the recorder's hot path: the start and the end of a range. recorder/life.c
 * has its life cycle (start, stop, settings, forks).
 *
 * Nothing here locks, allocates, logs or enters the kernel, except for the first range of a thread,
 * of an operator and label set, and of an octave; and in windows, once in half a millisecond of the
 * main thread at most, to read its CPU clock (recorder/off_cpu.h).
 */
#include "recorder/state.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "base/hot.h"
#include "opscope/debug_info.h"
#include "record/range.h"
#include "recorder/cost.h"
#include "recorder/count.h"
#include "recorder/off_cpu.h"
#include "recorder/outer_variance.h"
#include "recorder/range_clock.h"
#include "recorder/recorder.h"

/* ---- start --------------------------------------------------------------------------------- */

static inline bool is_full(const struct opscope__recorder_thread *state)
{
    return state->top == &state->frames[1 + OPSCOPE__FRAME_LIMIT];
}

static inline bool is_async(const opscope_range *fn)
{
    return fn->info != NULL && __builtin_expect(fn->info->is_async, 0);
}

static inline void begin(struct opscope__frame *frame, uint64_t key, const opscope_range *fn,
                         const struct opscope__thread *thread, void **context)
{
    frame->key = key | opscope__hot.label_bits;
    frame->range = fn;
    *context = frame;
    frame->weight = opscope__load_relaxed(
        &opscope__recorder.weights[opscope__load_relaxed(&thread->is_new) & 1]);
    frame->serial = opscope__load_relaxed(&opscope__recorder.serial);
    frame->child_ticks = 0;
}

static _Thread_local uint64_t outer_began; /* in ticks; 0: now */

void opscope__recorder_outer_began(uint64_t start_ticks)
{
    outer_began = start_ticks;
}

/* All other cases: a thread's first range in a segment, async ranges, outer ranges, deeper nesting
 * than there are frames. */
int OPSCOPE__COLD opscope__recorder_start_slow(const opscope_range *fn, bool is_outer,
                                               void **context)
{
    struct opscope__thread *thread = opscope__hot.thread;
    struct opscope__recorder_thread *state = thread->recorder;
    if (__builtin_expect(opscope__load_relaxed(&opscope__recorder.awaits_range) != 0, 0)) {
        opscope__recorder.hooks->first_range(&opscope__recorder);
    }
    if (state == NULL || state->epoch != opscope__load_relaxed(&opscope__recorder.segment.epoch)) {
        state = opscope__recorder_thread_open(thread);
    }
    if (state == NULL || (!is_outer && opscope__load_relaxed(&opscope__recorder.is_open) == 0)) {
        return OPSCOPE_OK; /* no room, or between windows */
    }
    struct opscope__frame *frame = NULL;
    if (is_async(fn)) {
        struct opscope__async_frame *kept = malloc(sizeof *kept);
        if (kept != NULL) {
            kept->labels = opscope_debug_info_hold();
            frame = &kept->frame;
        }
    } else if (!is_full(state)) {
        frame = state->top++;
    }
    if (frame == NULL) {
        opscope__recorder_drop(state);
        return OPSCOPE_OK;
    }
    begin(frame, opscope__count_key(fn->op, (is_async(fn) ? state->top : frame)[-1].key), fn,
          thread, context);
    if (is_outer) {
        frame->weight = OPSCOPE__WEIGHT_ONE;
        frame->serial = OPSCOPE__OUTER;
        frame->exact_ticks = 0;
    }
    frame->epoch =
        is_async(fn) ? state->epoch : (uint32_t)opscope__load_relaxed(&opscope__recorder.serial);
    const uint64_t now = opscope__ticks();
    frame->start_ticks = is_outer && outer_began != 0 ? outer_began
                         : is_outer || is_async(fn)   ? now
                                                      : opscope__range_clock_begin(state, now);
    return OPSCOPE_OK;
}

int OPSCOPE__HOT opscope__recorder_range_start(const opscope_range *fn, void *user, void **context)
{
    (void)user;
    const struct opscope__recorder *recorder = &opscope__recorder;
    const struct opscope__thread *thread = opscope__hot.thread;
    struct opscope__recorder_thread *state = thread->recorder;
    if (__builtin_expect(state == NULL ||
                             state->epoch != opscope__load_relaxed(&recorder->segment.epoch) ||
                             opscope__load_relaxed(&recorder->is_open) == 0 || is_async(fn) ||
                             is_full(state) || !opscope__clock_is_counter,
                         0)) {
        return opscope__recorder_start_slow(fn, false, context);
    }
    struct opscope__frame *frame = state->top++;
    begin(frame, opscope__count_key(fn->op, frame[-1].key), fn, thread, context);
    const uint64_t now = opscope__counter(), last_ticks = state->last_ticks;
    const uint64_t start_ticks = opscope__range_clock_begin(state, now);
    frame->start_ticks = start_ticks;
    if (opscope__range_clock_is_long(start_ticks - last_ticks)) {
        return opscope__off_cpu_begin(state, frame);
    }
    return OPSCOPE_OK;
}

/* ---- end ----------------------------------------------------------------------------------- */

/* Counts the cost of a range of a window that is in no cell, because it only encloses others or
 * belongs to the warm-up. */
static int OPSCOPE__COLD count_enclosing(const struct opscope__recorder_thread *state,
                                         const struct opscope__frame *frame)
{
    opscope__cost_in_no_cell(state->header, (uint32_t)frame->key);
    return OPSCOPE_OK;
}

/* Another processor's counter may be slightly behind. */
static uint64_t ticks_since(const struct opscope__frame *frame, uint64_t now)
{
    return now > frame->start_ticks ? now - frame->start_ticks : 0;
}

/* All other cases: a range that was not recorded at its start, is async, or belongs to another
 * thread, process or segment. */
static int end_any(const opscope_range *fn, struct opscope__frame *frame, uint64_t now)
{
    struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    if (frame == NULL) {
        return OPSCOPE_OK;
    }
    bool is_here = state != NULL && state->epoch != 0 &&
                   state->epoch == opscope__load_relaxed(&opscope__recorder.segment.epoch);
    if (is_async(fn)) {
        const bool is_now = frame->epoch == opscope__load_relaxed(&opscope__recorder.segment.epoch);
        if (is_now && !is_here) {
            state =
                opscope__recorder_thread_open(opscope__hot.thread); /* its first range ends here */
        }
        if (is_now && state != NULL && frame->weight != 0) {
            frame->serial =
                OPSCOPE__NO_SERIAL; /* work that runs meanwhile on its thread is not inside it */
            (void)opscope__count_slow(state, frame, ticks_since(frame, now),
                                      (fn->failed & OPSCOPE__FAILED) != 0);
        }
        opscope_debug_info_release(((struct opscope__async_frame *)(void *)frame)->labels);
        free(frame);
        return OPSCOPE_OK;
    }
    if (!is_here || frame < &state->frames[1] || frame >= state->top || frame->range != fn) {
        return OPSCOPE_OK; /* already unwound, when an enclosing range ended first */
    }
    for (const struct opscope__frame *within = frame + 1; within < state->top; within++) {
        frame->child_ticks += within->child_ticks;
        frame->exact_ticks += within->serial == OPSCOPE__OUTER ? within->exact_ticks : 0;
    }
    opscope__recorder_unwind(state, frame + 1);
    if ((fn->failed & OPSCOPE__LOST) != 0) {
        opscope__count_in_parent(frame, frame->child_ticks); /* as if the range had not existed */
        frame[-1].exact_ticks += frame->serial == OPSCOPE__OUTER ? frame->exact_ticks : 0;
        opscope__recorder_unwind(state, frame);
        return OPSCOPE_OK;
    }
    state->top = frame;
    const bool is_outer = frame->serial == OPSCOPE__OUTER;
    const bool is_long =
        !is_outer &&
        opscope__range_clock_is_long(opscope__range_clock_read(state, now) - frame->start_ticks);
    const uint64_t off_ticks = is_long ? opscope__off_cpu_end(state, &now) : 0;
    const uint64_t ticks =
        is_outer ? ticks_since(frame, now)
                 : opscope__range_clock_leave(
                       state, frame,
                       opscope__range_clock_loop_ticks(
                           state, opscope__table_find(state->table, frame->key), frame->key),
                       now);
    opscope__count_in_parent(frame, ticks);
    if (is_long) {
        opscope__off_cpu_ended(state, frame, ticks, off_ticks);
    }
    const bool failed = (fn->failed & OPSCOPE__FAILED) != 0;
    if (frame->weight == 0) {
        return count_enclosing(state, frame);
    }
    if (!is_outer) {
        return opscope__count_slow(state, frame, ticks, failed);
    }
    frame[-1].exact_ticks += ticks;
    if (frame->child_ticks != 0) {
        opscope__outer_inside_add(
            frame->key, frame->exact_ticks, frame->child_ticks - frame->exact_ticks,
            (uint32_t)opscope__load_relaxed(&opscope__recorder.serial) - frame->epoch);
    }
    return opscope__count_outer(state, frame, ticks, failed);
}

/* The same, and a poll of the control block if one is due, which may change everything. */
int OPSCOPE__COLD opscope__recorder_end_slow(const opscope_range *fn, struct opscope__frame *frame,
                                             uint64_t now)
{
    (void)end_any(fn, frame, now);
    struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    if (state != NULL && now >= state->next_poll_ticks) {
        state->next_poll_ticks = UINT64_MAX; /* no poll within the poll */
        state->next_poll_ticks = opscope__recorder.hooks->poll(state->header, now);
    }
    return OPSCOPE_OK;
}

int OPSCOPE__HOT opscope__recorder_range_end(const opscope_range *fn, void *user, void *context)
{
    (void)user;
    struct opscope__frame *frame = context;
    if (__builtin_expect(!opscope__clock_is_counter, 0)) {
        return opscope__recorder_end_slow(fn, frame, opscope__ticks());
    }
    const uint64_t now = opscope__counter();
    struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    /* The common case: the innermost frame of this thread, so not an async one; not failed. If its
     * segment was closed meanwhile, its table now lies in private memory, and counting there does
     * no harm. */
    if (__builtin_expect(state == NULL || frame != state->top - 1 || frame->range != fn ||
                             fn->failed != 0 || now >= state->next_poll_ticks,
                         0)) {
        return opscope__recorder_end_slow(fn, frame, now);
    }
    struct opscope__slot *slot = opscope__table_find(state->table, frame->key);
    /* With a counter that is slightly behind, it seems to be long. */
    if (__builtin_expect(slot == NULL || slot->cost_ticks == 0, 0) ||
        opscope__range_clock_is_long(opscope__range_clock_read(state, now) - frame->start_ticks)) {
        return opscope__recorder_end_slow(fn, frame, now);
    }
    const uint64_t ticks = opscope__range_clock_leave(state, frame, slot->cost_ticks, now);
    state->top = frame;
    opscope__count_in_parent(frame, ticks);
    if (__builtin_expect(frame->weight == 0, 0)) {
        return count_enclosing(state, frame);
    }
    uint64_t octave, bucket;
    opscope__count_bucket(ticks, &octave, &bucket);
    if (__builtin_expect(slot->last_octave != octave, 0)) {
        return opscope__count_slow(state, frame, ticks, false);
    }
    opscope__count_in(slot->cell, slot->last_line, bucket, frame, ticks);
    return OPSCOPE_OK;
}
