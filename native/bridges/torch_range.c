/* torch_range.c -- the hot path of the PyTorch bridge: one of its ranges becomes one of ours.
 *
 * A range of PyTorch's is an at::RecordFunction on the stack of the thread that opened it, almost
 * always: its start pushes an open range on a stack of the thread's, its end finds it on top by the
 * RecordFunction's address. A range whose end goes missing (record_function left on another thread)
 * is lost: see torch_stack.c. Those that may end on another thread (TorchScript functions, which
 * jit.fork may move, and asynchronous ones) have their range in a context that PyTorch hands back
 * to the end.
 *
 * Nothing here allocates but for a thread's first range and for those contexts.
 */
#include "bridges/torch_range.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/atomics.h"
#include "base/hot.h"
#include "bridges/torch_labels.h"
#include "bridges/torch_stack.h"
#include "record/callback.h"

/* Of any operator of the scope: what the countdown needs to know. */
static const opscope_op any_of_scope[OPSCOPE_SCOPE_COUNT] = {
    {.scope = 0}, {.scope = 1}, {.scope = 2}, {.scope = 3}, {.scope = 4},
    {.scope = 5}, {.scope = 6}, {.scope = 7}, {.scope = 8}, {.scope = 9},
};

void opscope__torch_seed_sampling(void)
{
    uint32_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed) {
        opscope__torch.seed_sampling(seed);
    }
}

static void describe(opscope_range_info *info, const struct opscope__torch_function *fn)
{
    const struct opscope__torch_layout *layout = &opscope__torch.layout;
    info->sequence_nr = OPSCOPE__TORCH_FIELD(int64_t, fn, layout->sequence_nr);
    const uint64_t forward = OPSCOPE__TORCH_FIELD(uint64_t, fn, layout->forward_thread_id);
    info->forward_thread_id =
        __builtin_expect(forward != 0, 0) ? opscope__torch_our_thread_id(forward) : 0;
    info->inputs = opscope__torch_box_inputs;
    info->inputs_arg = (void *)(uintptr_t)fn;
    info->is_async = false;
}

/* ---- ranges that may end on another thread ---------------------------------------------------- */

struct moving_range {
    struct opscope__torch_context context; /* first: PyTorch knows this much */
    opscope_range range;
    opscope_range_info info;
};

static void leave_alone(struct opscope__torch_context *context)
{
    (void)context;
}

static void free_moving(struct opscope__torch_context *context)
{
    struct moving_range *moving = (struct moving_range *)(void *)context;
    opscope_range_close(&moving->range); /* where it was never ended */
    free(moving);
}

static const struct opscope__torch_context_type moving_type = {leave_alone, free_moving};

/* Handed back with the end of a range that nobody looks at, to be known by. */
static const struct opscope__torch_context_type skipped_type = {leave_alone, leave_alone};
static struct opscope__torch_context skipped = {&skipped_type};

static struct opscope__torch_context *OPSCOPE__SELDOM
start_moving(const struct opscope__torch_function *fn)
{
    struct moving_range *moving = malloc(sizeof *moving);
    if (moving == NULL) {
        return &skipped;
    }
    moving->context.type = &moving_type;
    describe(&moving->info, fn);
    moving->info.is_async = true;
    opscope__range_open_slow(&moving->range, opscope__torch_op(fn), &moving->info);
    if (moving->range.firing == NULL) {
        free(moving);
        return &skipped;
    }
    return &moving->context;
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Whether there is a place for one more range, once what is lost has been taken off. */
static bool OPSCOPE__SELDOM make_room(struct opscope__torch_stack *stack)
{
    if (opscope__hot.running != NULL) {
        return false; /* of a callback's own, perhaps of what is being taken off: not recorded */
    }
    opscope__torch_stack_shed(stack);
    if (stack->top == &stack->ranges[OPSCOPE__TORCH_OPEN_LIMIT]) {
        opscope__torch_stack_unwind(stack,
                                    stack->ranges); /* not nested so deep: ends are missing */
    }
    return true;
}

struct opscope__torch_context **OPSCOPE__HOT opscope__torch_range_start(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn)
{
    const uint8_t scope = opscope__torch_scope(fn);
    if (opscope__range_is_skipped(&any_of_scope[scope])) {
        *context = &skipped;
        return context;
    }
    *context = NULL;
    if (__builtin_expect(opscope__load_relaxed(&opscope__torch_has_labels), 0)) {
        opscope__torch_follow_labels();
    }
    if (__builtin_expect(scope == OPSCOPE_TORCHSCRIPT_FUNCTION || opscope__torch_is_async(fn), 0)) {
        *context = start_moving(fn);
        return context;
    }
    struct opscope__torch_stack *stack = opscope__torch_stack;
    if (__builtin_expect(stack == NULL, 0) && (stack = opscope__torch_stack_make()) == NULL) {
        *context = &skipped;
        return context;
    }
    struct opscope__torch_open *open = stack->top;
    const bool is_lost = opscope__load_relaxed(&stack->lost_count) != 0 &&
                         opscope__load_relaxed(&open[-1].fn) == NULL;
    if (__builtin_expect(is_lost || open == &stack->ranges[OPSCOPE__TORCH_OPEN_LIMIT], 0)) {
        if (!make_room(stack)) {
            *context = &skipped;
            return context;
        }
        open = stack->top;
    }
    opscope__store_relaxed(&open->fn, fn); /* partners: the loads of who looks for a range */
    open->uncaught_count = stack->exceptions->uncaught_count;
    describe(&open->info, fn);
    opscope__store_relaxed(&stack->top, open + 1); /* before callbacks, which may call operators */
    opscope__range_open_slow(&open->range, opscope__torch_op(fn), &open->info);
    if (__builtin_expect(open->range.firing == NULL, 0)) {
        opscope__store_relaxed(&stack->top, open);
        *context = &skipped;
    }
    return context;
}

struct opscope__torch_context **opscope__torch_range_start_drawn(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn)
{
    if (!opscope__range_was_drawn((opscope_scope)opscope__torch_scope(fn))) {
        *context = &skipped;
        return context;
    }
    return opscope__torch_range_start(context, fn);
}

/* ---- end ------------------------------------------------------------------------------------- */

static inline void close_range(const struct opscope__torch_stack *stack,
                               struct opscope__torch_open *open,
                               const struct opscope__torch_function *fn)
{
    if (__builtin_expect(stack->exceptions->uncaught_count > open->uncaught_count, 0)) {
        opscope_range_fail(&open->range); /* it ends because an exception passes through it */
    }
    if (__builtin_expect((open->range.fired & open->range.firing->needs_outputs) != 0, 0)) {
        opscope_range_outputs(&open->range, opscope__torch_box_outputs, (void *)(uintptr_t)fn);
    }
    opscope__range_close_slow(&open->range);
}

/* Not the innermost open range: one around it whose own end is missing, or none of this thread's.
 */
static void OPSCOPE__SELDOM end_seldom(const struct opscope__torch_function *fn)
{
    struct opscope__torch_stack *stack = opscope__torch_stack;
    struct opscope__torch_open *open = stack != NULL ? stack->top : NULL;
    while (open != NULL && open > stack->ranges && opscope__load_relaxed(&open[-1].fn) != fn) {
        open--;
    }
    if (open == NULL || open == stack->ranges) {
        opscope__torch_stack_ended_elsewhere(fn);
        return;
    }
    opscope__torch_stack_unwind(stack, open);
    close_range(stack, open - 1, fn);
    opscope__store_relaxed(&stack->top, open - 1);
}

void OPSCOPE__HOT opscope__torch_range_end(const struct opscope__torch_function *fn,
                                           struct opscope__torch_context *context)
{
    if (__builtin_expect(context != NULL, 0)) {
        if (context != &skipped) {
            opscope_range_close(&((struct moving_range *)(void *)context)->range);
        }
        return;
    }
    struct opscope__torch_stack *stack = opscope__torch_stack;
    if (__builtin_expect(stack == NULL || stack->top == stack->ranges, 0) ||
        __builtin_expect(opscope__load_relaxed(&stack->top[-1].fn) != fn, 0)) {
        end_seldom(fn);
        return;
    }
    struct opscope__torch_open *last = stack->top - 1;
    close_range(stack, last, fn);
    opscope__store_relaxed(&stack->top, last); /* after callbacks, which may call operators */
}
