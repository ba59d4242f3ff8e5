/* recorder/range_clock.h -- durations without the cost of recording; the hot path includes it.
 *
 * Durations in windows leave out what recording costs: that of the ranges inside, and the part of a
 * range's own cost between its two readings of the clock. Otherwise the cost of recording the
 * ranges inside would be self time of the range around them: for an operator that takes half a
 * microsecond, a half of it.
 *
 * A thread has a clock for this: the processor's, minus the estimated cost of the thread's ranges
 * so far. The estimate may be too large, so the clock waits rather than run backwards: a range
 * lasts at least as long as the ranges inside it together, and self times add up. What it waits for
 * does not outlast the next beginning of a range: the cost of one range cannot be longer than the
 * time to the next, and would otherwise be taken off that one.
 *
 * The part between a range's readings was measured with an empty range of PyTorch: 22 of 105 ns on
 * a Zen 3, 18 of 96 ns on a Zen 5. In a program where a range costs 3000 ns, this part alone grows
 * to 37 ns, but operators are slower too while they are recorded. So it is taken to grow with the
 * cost. With a part that does not grow, small operators of GPT-2 and BERT appeared a fifth to a
 * third too long.
 *
 * This holds in windows. With --sampling 1, and for outer ranges, a duration is the time that has
 * passed, with the cost in it: those numbers are exact.
 */
#ifndef OPSCOPE_RECORDER_RANGE_CLOCK_H
#define OPSCOPE_RECORDER_RANGE_CLOCK_H

#include "recorder/state.h"

enum { OPSCOPE__INSIDE_LOG2 = 4, OPSCOPE__INSIDE_SIXTEENTHS = 3 };

/* The thread's clock at `now` of the processor's. */
static inline uint64_t opscope__range_clock_read(struct opscope__recorder_thread *state,
                                                 uint64_t now)
{
    const uint64_t ticks = now - state->cost_ticks;
    return __builtin_expect((int64_t)(ticks - state->last_ticks) >= 0, 1) ? ticks
                                                                          : state->last_ticks;
}

/* The same as a range begins. */
static inline uint64_t opscope__range_clock_begin(struct opscope__recorder_thread *state,
                                                  uint64_t now)
{
    const uint64_t ticks = now - state->cost_ticks, since_last = now - state->last_ticks;
    if (__builtin_expect((int64_t)(ticks - state->last_ticks) >= 0, 1)) {
        return ticks;
    }
    /* Another processor's counter may be slightly behind. */
    state->cost_ticks = (int64_t)since_last >= 0 ? since_last : state->cost_ticks;
    return state->last_ticks;
}

/* Whether so much may contain a stop: recorder/off_cpu.h. */
static inline bool opscope__range_clock_is_long(uint64_t ticks)
{
    return __builtin_expect(ticks > opscope__load_relaxed(&opscope__recorder.long_ticks), 0);
}

/* What recording a range costs in a loop. `slot`: NULL if its key has none yet. */
static inline uint64_t opscope__range_clock_loop_ticks(const struct opscope__recorder_thread *state,
                                                       const struct opscope__slot *slot,
                                                       uint64_t key)
{
    return slot != NULL && slot->cost_ticks != 0
               ? slot->cost_ticks
               : opscope__table_cost_ticks(state->header, (uint32_t)key);
}

/* A range ends, and recording it costs so much in a loop: its duration. Afterwards the thread's
 * clock leaves out its cost in this program. */
static inline uint64_t opscope__range_clock_leave(struct opscope__recorder_thread *state,
                                                  const struct opscope__frame *frame,
                                                  uint64_t loop_ticks, uint64_t now)
{
    const int64_t elapsed = (int64_t)(opscope__range_clock_read(state, now) - frame->start_ticks);
    /* Another processor's counter may be slightly behind. */
    const uint64_t most = elapsed > 0 ? (uint64_t)elapsed : 0;
    const uint64_t factor = opscope__load_relaxed(&opscope__recorder.cost_factor);
    if (factor == 0) {
        return most;
    }
    const uint64_t cost = loop_ticks * factor >> OPSCOPE__COST_FACTOR_LOG2;
    const uint64_t inside = cost * OPSCOPE__INSIDE_SIXTEENTHS >> OPSCOPE__INSIDE_LOG2;
    const uint64_t least = frame->child_ticks < most ? frame->child_ticks : most;
    const uint64_t ticks = most >= least + inside ? most - inside : least;
    state->inner_end_ticks = state->last_ticks;
    state->last_ticks = frame->start_ticks + ticks;
    state->cost_ticks = now - state->last_ticks + cost - inside;
    return ticks;
}

#endif
