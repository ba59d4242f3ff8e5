/* torch/open.h -- how a range goes onto its thread's stack, and what the thread's phase is
 * meanwhile; the hot path of the PyTorch bridge includes it. */
#ifndef OPSCOPE_BRIDGES_TORCH_OPEN_H
#define OPSCOPE_BRIDGES_TORCH_OPEN_H

#include "base/atomics.h"
#include "base/hot.h"
#include "bridges/torch/stack.h"
#include "record/callback.h"

/* True if no PyTorch operator is known to be open on this thread, at most outer ranges. */
static inline bool opscope__torch_is_outermost(const struct opscope__torch_stack *stack,
                                               const struct opscope__torch_open *open)
{
    return open == stack->ranges || open[-1].is_reported ||
           (open[-1].range.snapshot != NULL && open[-1].range.op->scope == OPSCOPE_USER_SCOPE);
}

/* Sets the phase from PyTorch: a window may have opened in the middle of a backward node, whose
 * range then has no start here. */
static inline void opscope__torch_enter(const struct opscope__torch_stack *stack)
{
    uint64_t bits = stack->phase_bits;
    if (bits == 0 && opscope__load_relaxed(&opscope__torch_is_sampled)) {
        if (opscope__torch.graph_task_id == NULL) {
            bits = OPSCOPE__PHASE_BITS(OPSCOPE_UNKNOWN);
        } else if (opscope__torch.graph_task_id() != -1) {
            bits = OPSCOPE__PHASE_BITS(OPSCOPE_BACKWARD);
        }
    }
    opscope__hot.phase_bits = bits;
}

/* The thread leaves the enclosing range: the next range determines its phase anew. */
static inline void opscope__torch_leave(const struct opscope__torch_stack *stack,
                                        const struct opscope__torch_open *open)
{
    if (opscope__torch_is_outermost(stack, open)) {
        opscope__hot.phase_bits = stack->phase_bits;
    }
}

/* The entry for one more range, not yet on the stack; NULL if there is no room. */
static inline __attribute__((always_inline)) struct opscope__torch_open *opscope__torch_push(
    const struct opscope__torch_function *fn)
{
    struct opscope__torch_stack *stack = opscope__torch_stack;
    if (__builtin_expect(stack == NULL, 0) && (stack = opscope__torch_stack_make()) == NULL) {
        return NULL;
    }
    struct opscope__torch_open *open = stack->top;
    const bool is_lost = opscope__load_relaxed(&stack->lost_count) != 0 &&
                         opscope__load_relaxed(&open[-1].fn) == NULL;
    if (__builtin_expect(is_lost || open == &stack->ranges[OPSCOPE__TORCH_OPEN_LIMIT], 0)) {
        if (!opscope__torch_stack_make_room(stack)) {
            return NULL;
        }
        open = stack->top;
    }
    opscope__store_relaxed(&open->fn,
                           fn); /* partners: the loads of threads that search for a range */
    open->uncaught_count = stack->exceptions->uncaught_count;
    open->is_reported = false;
    return open;
}

/* Puts the described entry on the stack and opens its range; false if no callback observes it. */
static inline __attribute__((always_inline)) bool opscope__torch_start_on(
    struct opscope__torch_open *open, const opscope_op *op)
{
    struct opscope__torch_stack *stack = opscope__torch_stack;
    if (opscope__torch_is_outermost(stack, open)) {
        opscope__torch_enter(stack);
    }
    opscope__store_relaxed(&stack->top, open + 1); /* before callbacks, which may call operators */
    opscope__range_open_slow(&open->range, op, &open->info);
    if (__builtin_expect(open->range.snapshot == NULL, 0)) {
        opscope__store_relaxed(&stack->top, open);
        return false;
    }
    return true;
}

/* True if it ends because an exception passes through it. */
static inline bool opscope__torch_has_failed(const struct opscope__torch_stack *stack,
                                             const struct opscope__torch_open *open)
{
    return __builtin_expect(stack->exceptions->uncaught_count > open->uncaught_count, 0);
}

#endif
