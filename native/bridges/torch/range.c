/* torch/range.c -- the hot path of the PyTorch bridge: turns a PyTorch range into an Opscope range.
 *
 * A PyTorch range is an at::RecordFunction, almost always on the stack of the thread that opened
 * it. Its start pushes an open range onto the thread's stack of ranges; its end finds it on top by
 * the RecordFunction's address. A range whose end does not come (record_function left on another
 * thread) is lost: see torch/stack.c. Ranges that may end on another thread (TorchScript functions,
 * which jit.fork may move, and asynchronous ones) have their range in a context, which PyTorch
 * passes back to the end.
 *
 * Nothing here allocates except a thread's first range, and those contexts.
 */
#include "bridges/torch/range.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "base/hot.h"
#include "bridges/torch/labels.h"
#include "bridges/torch/op.h"
#include "bridges/torch/open.h"
#include "bridges/torch/stack.h"
#include "bridges/torch/values.h"
#include "record/callback.h"
#include "recorder/cost.h"

/* A representative operator of each scope, for the countdown. */
static const opscope_op any_of_scope[OPSCOPE_SCOPE_COUNT] = {
    {.scope = 0}, {.scope = 1}, {.scope = 2}, {.scope = 3}, {.scope = 4},
    {.scope = 5}, {.scope = 6}, {.scope = 7}, {.scope = 8}, {.scope = 9},
};

/* Where `is_basic` is a parameter, it is a constant of each caller: the layout of PyTorch's ranges
 * is not known, and only its functions are used. */

static inline void describe(opscope_range_info *info, const struct opscope__torch_function *fn,
                            bool is_basic)
{
    info->is_async = false;
    if (is_basic) {
        info->sequence_nr = -1;
        info->forward_thread_id = 0;
        info->inputs = NULL;
        return;
    }
    info->sequence_nr = OPSCOPE__TORCH_FIELD(int64_t, fn, opscope__torch.layout.sequence_nr);
    const uint64_t forward = opscope__torch_forward_thread_id(fn);
    info->forward_thread_id =
        __builtin_expect(forward != 0, 0) ? opscope__torch_our_thread_id(forward) : 0;
    info->inputs = opscope__torch_box_inputs;
    info->inputs_arg = (void *)(uintptr_t)fn;
}

static inline const opscope_op *op_of(const struct opscope__torch_function *fn, uint8_t scope,
                                      bool is_basic)
{
    return is_basic ? opscope__torch_op_by_name(fn, scope) : opscope__torch_op(fn, scope);
}

static inline bool is_async(const struct opscope__torch_function *fn, bool is_basic)
{
    return is_basic ? opscope__torch.is_async(fn) : opscope__torch_is_async(fn);
}

/* ---- ranges that may end on another thread ---------------------------------------------------- */

struct moving_range {
    struct opscope__torch_context context; /* first: the part that PyTorch sees */
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
    opscope_range_close(&moving->range); /* if it was never ended */
    free(moving);
}

static const struct opscope__torch_context_type moving_type = {leave_alone, free_moving};

/* The context of a range that no callback observes; it identifies such a range at its end. */
static const struct opscope__torch_context_type skipped_type = {leave_alone, leave_alone};
static struct opscope__torch_context skipped = {&skipped_type};

static struct opscope__torch_context *OPSCOPE__COLD
start_moving(const struct opscope__torch_function *fn, uint8_t scope, bool is_basic)
{
    struct moving_range *moving = malloc(sizeof *moving);
    if (moving == NULL) {
        return &skipped;
    }
    moving->context.type = &moving_type;
    describe(&moving->info, fn, is_basic);
    moving->info.is_async = true;
    opscope__range_open_slow(&moving->range, op_of(fn, scope, is_basic), &moving->info);
    if (moving->range.snapshot == NULL) {
        free(moving);
        return &skipped;
    }
    return &moving->context;
}

/* ---- start ----------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) struct opscope__torch_context **start_now(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn,
    uint8_t scope, bool is_basic)
{
    *context = NULL;
    if (__builtin_expect(opscope__load_relaxed(&opscope__torch_has_labels), 0)) {
        opscope__torch_follow_labels();
    }
    if (__builtin_expect(scope == OPSCOPE_TORCHSCRIPT_FUNCTION || is_async(fn, is_basic), 0)) {
        *context = start_moving(fn, scope, is_basic);
        return context;
    }
    struct opscope__torch_open *open = opscope__torch_push(fn);
    if (__builtin_expect(open == NULL, 0)) {
        *context = &skipped;
        return context;
    }
    describe(&open->info, fn, is_basic);
    if (__builtin_expect(!opscope__torch_start_on(open, op_of(fn, scope, is_basic)), 0)) {
        *context = &skipped;
    }
    return context;
}

/* One range in this many is timed: the time that the bridge and the recorder take in this program,
 * with the caches as the program leaves them (recorder/cost.h). */
enum { PROBE_EVERY = 16 };
static _Thread_local uint32_t probe_left = PROBE_EVERY;

static struct opscope__torch_context **OPSCOPE__COLD
start_probed(struct opscope__torch_context **context, const struct opscope__torch_function *fn,
             uint8_t scope, bool is_basic)
{
    const uint64_t start = opscope__cost_probe_clock();
    (void)(is_basic ? start_now(context, fn, scope, true) : start_now(context, fn, scope, false));
    struct opscope__torch_stack *stack = opscope__torch_stack;
    if (*context == NULL && stack != NULL) {
        stack->probed = fn;
        stack->probe_ticks = opscope__cost_probe_clock() - start;
    }
    probe_left = PROBE_EVERY;
    return context;
}

/* The range of a block that a mode begins (torch/stack.h). Its turn in the countdown comes later.
 */
static bool OPSCOPE__COLD is_left_out(void)
{
    struct opscope__torch_block_call *call = &opscope__torch_block_call;
    const struct opscope__torch_stack *stack = opscope__torch_stack;
    if (call->is_again) {
        call->has_left = true;
        return true;
    }
    const bool is_inside = call->name != 0 && stack != NULL &&
                           stack->top > (call->top != NULL ? call->top : stack->ranges);
    if (is_inside) { /* of a range that ends within the call */
        call->has_left = true;
        call->began_ticks = opscope__cost_probe_clock();
    }
    return is_inside;
}

static inline __attribute__((always_inline)) struct opscope__torch_context **start_range(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn,
    uint8_t scope, bool is_basic)
{
    if ((__builtin_expect(scope == OPSCOPE_USER_SCOPE, 0) && is_left_out()) ||
        opscope__range_is_skipped(&any_of_scope[scope])) {
        *context = &skipped;
        return context;
    }
    if (__builtin_expect(--probe_left == 0, 0)) {
        return start_probed(context, fn, scope, is_basic);
    }
    return start_now(context, fn, scope, is_basic);
}

struct opscope__torch_context **OPSCOPE__HOT opscope__torch_range_start(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn)
{
    return start_range(context, fn, opscope__torch_scope(fn), false);
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

/* ---- start, without a layout ------------------------------------------------------------------ */

__attribute__((noinline)) struct opscope__torch_context **opscope__torch_range_start_basic(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn,
    uint8_t scope)
{
    return start_range(context, fn, scope, true);
}

#define START_BASIC(scope)                                                                         \
    static struct opscope__torch_context **start_basic_##scope(                                    \
        struct opscope__torch_context **context, const struct opscope__torch_function *fn)         \
    {                                                                                              \
        return opscope__torch_range_start_basic(context, fn, scope);                               \
    }                                                                                              \
    OPSCOPE__CXX_ENTRY(start_basic_##scope)
START_BASIC(0);
START_BASIC(1);
START_BASIC(2);
START_BASIC(3);
START_BASIC(4);
START_BASIC(5);
START_BASIC(6);
START_BASIC(7);
START_BASIC(8);
START_BASIC(9);

const opscope__cxx_entry opscope__torch_range_entries_basic[OPSCOPE_SCOPE_COUNT] = {
    OPSCOPE__CXX_ENTRY_OF(start_basic_0), OPSCOPE__CXX_ENTRY_OF(start_basic_1),
    OPSCOPE__CXX_ENTRY_OF(start_basic_2), OPSCOPE__CXX_ENTRY_OF(start_basic_3),
    OPSCOPE__CXX_ENTRY_OF(start_basic_4), OPSCOPE__CXX_ENTRY_OF(start_basic_5),
    OPSCOPE__CXX_ENTRY_OF(start_basic_6), OPSCOPE__CXX_ENTRY_OF(start_basic_7),
    OPSCOPE__CXX_ENTRY_OF(start_basic_8), OPSCOPE__CXX_ENTRY_OF(start_basic_9)};

/* ---- end ------------------------------------------------------------------------------------- */

static inline void close_range(const struct opscope__torch_stack *stack,
                               struct opscope__torch_open *open,
                               const struct opscope__torch_function *fn)
{
    if (opscope__torch_has_failed(stack, open)) {
        opscope_range_fail(&open->range);
    }
    if (__builtin_expect((open->range.fired & open->range.snapshot->needs_outputs) != 0, 0) &&
        open->info.inputs != NULL) {
        opscope_range_outputs(&open->range, opscope__torch_box_outputs, (void *)(uintptr_t)fn);
    }
    opscope__range_close_slow(&open->range);
}

/* Ends a range that is not the innermost open one: either an enclosing range, when inner ends are
 * missing, or one of another thread. */
static void OPSCOPE__COLD end_slow(const struct opscope__torch_function *fn)
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
    if (open[-1].is_reported) {
        opscope__outer_end(&open[-1].outer, opscope__torch_has_failed(stack, open - 1));
    } else {
        close_range(stack, open - 1, fn);
    }
    opscope__store_relaxed(&stack->top, open - 1);
}

static void OPSCOPE__COLD end_probed(struct opscope__torch_stack *stack,
                                     struct opscope__torch_open *open,
                                     const struct opscope__torch_function *fn)
{
    const uint64_t start = opscope__cost_probe_clock();
    stack->probed = NULL;
    close_range(stack, open, fn);
    opscope__cost_probe(stack->probe_ticks + opscope__cost_probe_clock() - start);
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
        end_slow(fn);
        return;
    }
    struct opscope__torch_open *last = stack->top - 1;
    if (__builtin_expect(stack->probed == fn, 0)) {
        end_probed(stack, last, fn);
    } else {
        close_range(stack, last, fn);
    }
    opscope__store_relaxed(&stack->top, last); /* after callbacks, which may call operators */
    opscope__torch_leave(stack, last);
}
