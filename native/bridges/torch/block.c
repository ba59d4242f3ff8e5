/* torch/block.c -- see torch/block.h. Most blocks are reported to the recorder itself
 * (recorder/outer.h); if other callbacks want them, they are opened as other ranges are. */
#include "bridges/torch/block.h"

#include "base/atomics.h"
#include "base/fetch.h"
#include "base/hot.h"
#include "bridges/torch/labels.h"
#include "bridges/torch/op.h"
#include "bridges/torch/open.h"
#include "bridges/torch/range.h"
#include "recorder/recorder.h"

bool opscope__torch_follows_blocks;

/* True if that range is open on this thread. */
static bool is_open_here(const void *block)
{
    const struct opscope__torch_stack *stack = opscope__torch_stack;
    const struct opscope__torch_open *open = stack != NULL ? stack->top : NULL;
    while (open != NULL && open > stack->ranges) {
        if (opscope__load_relaxed(&(--open)->fn) == block) {
            return true;
        }
    }
    return false;
}

/* Whether a range of that operator takes the phase of what encloses it. */
static bool has_weak_phase(const opscope_op *op)
{
    return op->phase < OPSCOPE_BACKWARD;
}

/* Reports a block to the recorder, if no other callback wants it. */
static bool report(struct opscope__torch_stack *stack, struct opscope__torch_open *open,
                   const opscope_op *op, uint64_t start_ticks)
{
    if (has_weak_phase(op) && opscope__torch_is_outermost(stack, open)) {
        opscope__torch_enter(stack);
    }
    open->is_reported = opscope__outer_begin(&open->outer, &open->range, op, start_ticks);
    if (open->is_reported) {
        opscope__store_relaxed(&stack->top, open + 1);
    }
    return open->is_reported;
}

const opscope_op *opscope__torch_block_op(const char *name, size_t name_bytes)
{
    return opscope__torch_op_named(name, name_bytes, OPSCOPE_USER_SCOPE);
}

void opscope__torch_block_start(const void *block, const opscope_op *op, uint64_t start_ticks)
{
    if (opscope__load_relaxed(&opscope__torch_has_labels)) {
        opscope__torch_follow_labels();
    }
    struct opscope__torch_open *open = opscope__torch_push(block);
    if (open == NULL) {
        return;
    }
    if (report(opscope__torch_stack, open, op, start_ticks)) {
        return;
    }
    if (opscope__range_is_skipped(op)) {
        opscope__torch_leave(opscope__torch_stack, open); /* its phase is no other range's */
        return;
    }
    open->info = (opscope_range_info){.sequence_nr = -1};
    opscope__recorder_outer_began(start_ticks);
    (void)opscope__torch_start_on(open, op);
    opscope__recorder_outer_began(0);
}

/* If that block is the innermost range of this thread and was reported. */
static bool end_reported(const void *block)
{
    struct opscope__torch_stack *stack = opscope__torch_stack;
    if (stack == NULL || stack->top == stack->ranges) {
        return false;
    }
    struct opscope__torch_open *last = stack->top - 1;
    if (opscope__load_relaxed(&last->fn) != block || !last->is_reported) {
        return false;
    }
    opscope__outer_end(&last->outer, opscope__torch_has_failed(stack, last));
    opscope__store_relaxed(&stack->top, last);
    opscope__torch_leave(stack, last);
    return true;
}

void opscope__torch_block_end(const void *block)
{
    if (end_reported(block)) {
        return;
    }
    if (is_open_here(block)) {
        opscope__torch_range_end(block, NULL);
    } else if (opscope__load_relaxed(&opscope__torch_follows_blocks)) {
        opscope__torch_stack_ended_elsewhere(block);
    }
}

void OPSCOPE__COLD opscope__torch_block_lose(const void *block)
{
    opscope__torch_stack_ended_elsewhere(block);
}

/* ---- what they need ---------------------------------------------------------------------------- */

/* Bytes of the functions' code. */
enum { START_BYTES = 384, NAMED_BYTES = 448, END_BYTES = 320 };

void opscope__torch_block_will_begin(void)
{
    const struct opscope__torch_stack *stack = opscope__torch_stack;
    if (stack != NULL) {
        opscope__fetch(stack->top, sizeof *stack->top);
        OPSCOPE__FETCH_CODE(opscope__torch_block_start, START_BYTES);
        OPSCOPE__FETCH_CODE(opscope__torch_op_named, NAMED_BYTES);
        opscope__outer_will_begin();
    }
}

void opscope__torch_block_will_end(const void *block)
{
    const struct opscope__torch_stack *stack = opscope__torch_stack;
    if (stack != NULL && stack->top > stack->ranges &&
        opscope__load_relaxed(&stack->top[-1].fn) == block && stack->top[-1].is_reported) {
        OPSCOPE__FETCH_CODE(opscope__torch_block_end, END_BYTES);
        opscope__outer_will_end(&stack->top[-1].outer);
    }
}
