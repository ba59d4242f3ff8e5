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
#include "bridges/torch/stack.h"
#include "bridges/torch/values.h"
#include "record/callback.h"
#include "recorder/cost.h"
#include "recorder/recorder.h"

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

/* ---- what encloses -------------------------------------------------------------------------- */

bool opscope__torch_is_sampled;

/* True if no PyTorch operator is known to be open on this thread, at most outer ranges. */
static inline bool is_outermost(const struct opscope__torch_stack *stack,
                                const struct opscope__torch_open *open)
{
    return open == stack->ranges ||
           (open[-1].range.snapshot != NULL && open[-1].range.op->scope == OPSCOPE_USER_SCOPE);
}

/* Sets the phase from PyTorch: a window may have opened in the middle of a backward node, whose
 * range then has no start here. */
static void enter(const struct opscope__torch_stack *stack)
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
static inline void leave(const struct opscope__torch_stack *stack,
                         const struct opscope__torch_open *open)
{
    if (is_outermost(stack, open)) {
        opscope__hot.phase_bits = stack->phase_bits;
    }
}

/* ---- start ----------------------------------------------------------------------------------- */

/* True if there is room for one more range, after lost ranges are removed. */
static bool OPSCOPE__COLD make_room(struct opscope__torch_stack *stack)
{
    if (opscope__hot.running != NULL) {
        return false; /* a callback opened it, perhaps one of the removal: not recorded */
    }
    opscope__torch_stack_shed(stack);
    if (stack->top == &stack->ranges[OPSCOPE__TORCH_OPEN_LIMIT]) {
        opscope__torch_stack_unwind(
            stack, stack->ranges); /* real nesting is never this deep: ends are missing */
    }
    return true;
}

/* The entry for one more range, not yet on the stack; NULL if there is no room. */
static inline __attribute__((always_inline)) struct opscope__torch_open *push(
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
        if (!make_room(stack)) {
            return NULL;
        }
        open = stack->top;
    }
    opscope__store_relaxed(&open->fn,
                           fn); /* partners: the loads of threads that search for a range */
    open->uncaught_count = stack->exceptions->uncaught_count;
    return open;
}

/* Puts the described entry on the stack and opens its range; false if no callback observes it. */
static inline __attribute__((always_inline)) bool start_on(struct opscope__torch_open *open,
                                                           const opscope_op *op)
{
    struct opscope__torch_stack *stack = opscope__torch_stack;
    if (is_outermost(stack, open)) {
        enter(stack);
    }
    opscope__store_relaxed(&stack->top, open + 1); /* before callbacks, which may call operators */
    opscope__range_open_slow(&open->range, op, &open->info);
    if (__builtin_expect(open->range.snapshot == NULL, 0)) {
        opscope__store_relaxed(&stack->top, open);
        return false;
    }
    return true;
}

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
    struct opscope__torch_open *open = push(fn);
    if (__builtin_expect(open == NULL, 0)) {
        *context = &skipped;
        return context;
    }
    describe(&open->info, fn, is_basic);
    if (__builtin_expect(!start_on(open, op_of(fn, scope, is_basic)), 0)) {
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

static inline __attribute__((always_inline)) struct opscope__torch_context **start_range(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn,
    uint8_t scope, bool is_basic)
{
    if (opscope__range_is_skipped(&any_of_scope[scope])) {
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
    if (__builtin_expect(stack->exceptions->uncaught_count > open->uncaught_count, 0)) {
        opscope_range_fail(&open->range); /* it ends because an exception passes through it */
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
    close_range(stack, open - 1, fn);
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
    leave(stack, last);
}

/* ---- record_function blocks ------------------------------------------------------------------ */

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

void opscope__torch_block_start(const void *block, const char *name, uint64_t ticks_ago)
{
    if (!opscope__load_relaxed(&opscope__torch_follows_blocks) ||
        opscope__range_is_skipped(&any_of_scope[OPSCOPE_USER_SCOPE])) {
        return;
    }
    if (opscope__load_relaxed(&opscope__torch_has_labels)) {
        opscope__torch_follow_labels();
    }
    struct opscope__torch_open *open = push(block);
    if (open != NULL) {
        open->info = (opscope_range_info){.sequence_nr = -1};
        opscope__recorder_outer_began(ticks_ago);
        (void)start_on(open, opscope__torch_op_named(name, OPSCOPE_USER_SCOPE));
        opscope__recorder_outer_began(0);
    }
}

void opscope__torch_block_end(const void *block)
{
    if (is_open_here(block)) {
        opscope__torch_range_end(block, NULL);
    } else if (opscope__load_relaxed(&opscope__torch_follows_blocks)) {
        opscope__torch_stack_ended_elsewhere(block);
    }
}
