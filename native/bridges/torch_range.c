/* torch_range.c -- the hot path of the PyTorch bridge: one of its ranges becomes one of ours.
 *
 * A range of PyTorch's is an at::RecordFunction on the stack of the thread that opened it, almost
 * always: its start pushes an open range on a stack of the thread's, its end finds it on top by the
 * RecordFunction's address. A range whose end goes missing (record_function left on another thread) is
 * taken off when one around it ends, or when there are too many of them, and counted as dropped. Those
 * that may end on another thread (TorchScript functions, which jit.fork may move, and asynchronous
 * ones) have their range in a context that PyTorch hands back to the end.
 *
 * Nothing here allocates but for a thread's first range and for those contexts.
 */
#include "bridges/torch_range.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/atomics.h"
#include "base/hot.h"
#include "bridges/torch_labels.h"
#include "record/callback.h"

enum { OPEN_LIMIT = 256, THREAD_LIMIT = 4096 };

/* By PyTorch's id of a thread: ours. Each written once, by the thread; relaxed. 0: not known. */
static uint64_t thread_ids[THREAD_LIMIT];

struct open_range {
    const struct opscope__torch_function *fn;
    opscope_range range;
    opscope_range_info info;
    unsigned uncaught_count; /* exceptions on their way when it started */
};

/* Owner: the thread. */
struct open_stack {
    struct open_range *top; /* the place for the next */
    const struct opscope__cxx_exceptions *exceptions; /* of the thread */
    struct open_range ranges[OPEN_LIMIT];
};

static _Thread_local struct open_stack *own_stack;
static pthread_key_t own_stack_key;
static bool has_key;

/* Of any operator of the scope: what the countdown needs to know. */
static const opscope_op any_of_scope[OPSCOPE_SCOPE_COUNT] = {
    {.scope = 0}, {.scope = 1}, {.scope = 2}, {.scope = 3}, {.scope = 4},
    {.scope = 5}, {.scope = 6}, {.scope = 7}, {.scope = 8}, {.scope = 9},
};

static void free_stack(void *stack)
{
    own_stack = NULL;
    opscope__torch_forget_labels();
    free(stack);
}

int opscope__torch_range_prepare(void)
{
    if (!has_key && pthread_key_create(&own_stack_key, free_stack) != 0) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    has_key = true;
    return OPSCOPE_OK;
}

void opscope__torch_seed_sampling(void)
{
    uint32_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed) {
        opscope__torch.seed_sampling(seed);
    }
}

static struct open_stack *OPSCOPE__SELDOM make_stack(void)
{
    const uint64_t torch_id = opscope__torch.thread_id();
    if (torch_id < THREAD_LIMIT) {
        /* Partner: the load in our_thread_id. */
        opscope__store_relaxed(&thread_ids[torch_id], opscope_thread_id());
    }
    struct open_stack *stack = malloc(sizeof *stack); /* large: touched as it is used */
    if (stack != NULL && pthread_setspecific(own_stack_key, stack) != 0) {
        free(stack);
        stack = NULL;
    }
    if (stack != NULL) {
        stack->top = stack->ranges;
        stack->exceptions = opscope__torch.exceptions();
        opscope__torch_seed_sampling();
    }
    own_stack = stack;
    return stack;
}

static uint64_t our_thread_id(uint64_t torch_id)
{
    return torch_id < THREAD_LIMIT ? opscope__load_relaxed(&thread_ids[torch_id]) : 0;
}

static void describe(opscope_range_info *info, const struct opscope__torch_function *fn)
{
    const struct opscope__torch_layout *layout = &opscope__torch.layout;
    info->sequence_nr = OPSCOPE__TORCH_FIELD(int64_t, fn, layout->sequence_nr);
    info->forward_thread_id =
        our_thread_id(OPSCOPE__TORCH_FIELD(uint64_t, fn, layout->forward_thread_id));
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

static struct opscope__torch_context *OPSCOPE__SELDOM
start_moving(const struct opscope__torch_function *fn)
{
    struct moving_range *moving = malloc(sizeof *moving);
    if (moving == NULL) {
        return NULL;
    }
    moving->context.type = &moving_type;
    describe(&moving->info, fn);
    moving->info.is_async = true;
    opscope__range_open_slow(&moving->range, opscope__torch_op(fn), &moving->info);
    if (moving->range.firing == NULL) {
        free(moving);
        return NULL;
    }
    return &moving->context;
}

/* ---- ranges of the thread's stack --------------------------------------------------------------- */

/* `fn` is the one that ends: of another, PyTorch's part may be gone. */
static inline void close_range(const struct open_stack *stack, struct open_range *open,
                               const struct opscope__torch_function *fn)
{
    if (__builtin_expect(stack->exceptions->uncaught_count > open->uncaught_count, 0)) {
        opscope_range_fail(&open->range); /* it ends because an exception passes through it */
    }
    if (__builtin_expect((open->range.fired & open->range.firing->needs_outputs) != 0, 0) &&
        open->fn == fn) {
        opscope_range_outputs(&open->range, opscope__torch_box_outputs, (void *)(uintptr_t)fn);
    }
    opscope__range_close_slow(&open->range);
}

/* From the outermost in: the recorder then knows that the inner ones have no end of their own, and
 * counts them as dropped. */
static void OPSCOPE__SELDOM close_from(struct open_stack *stack, struct open_range *first,
                                       const struct opscope__torch_function *fn)
{
    for (struct open_range *open = first, *const end = stack->top; open < end; open++) {
        close_range(stack, open, fn);
    }
    stack->top = first;
}

/* ---- start ----------------------------------------------------------------------------------- */

struct opscope__torch_context **OPSCOPE__HOT opscope__torch_range_start(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn)
{
    const uint8_t scope = opscope__torch_scope(fn);
    *context = NULL;
    if (opscope__range_is_skipped(&any_of_scope[scope])) {
        return context;
    }
    if (__builtin_expect(opscope__load_relaxed(&opscope__torch_has_labels), 0)) {
        opscope__torch_follow_labels();
    }
    if (__builtin_expect(scope == OPSCOPE_TORCHSCRIPT_FUNCTION || opscope__torch_is_async(fn), 0)) {
        *context = start_moving(fn);
        return context;
    }
    struct open_stack *stack = own_stack;
    if (__builtin_expect(stack == NULL, 0) && (stack = make_stack()) == NULL) {
        return context;
    }
    if (__builtin_expect(stack->top == &stack->ranges[OPEN_LIMIT], 0)) {
        close_from(stack, stack->ranges, NULL); /* not nested so deep: their ends went missing */
    }
    struct open_range *open = stack->top;
    open->fn = fn;
    open->uncaught_count = stack->exceptions->uncaught_count;
    describe(&open->info, fn);
    stack->top = open + 1; /* before callbacks run, which may call operators */
    opscope__range_open_slow(&open->range, opscope__torch_op(fn), &open->info);
    if (__builtin_expect(open->range.firing == NULL, 0)) {
        stack->top = open;
    }
    return context;
}

/* Makes this thread's countdown for the scope end at its next range. Countdowns of a sampled callback
 * have no memory, so that an early end leaves what comes after as likely as it was. */
static void end_countdown(uint8_t scope)
{
    struct opscope__hot *hot = &opscope__hot;
    if (hot->version != opscope__load_relaxed(&opscope__version)) {
        (void)opscope_has_callbacks(); /* sets the countdowns anew */
    }
    hot->skip[scope] = 1;
}

struct opscope__torch_context **opscope__torch_range_start_drawn(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn)
{
    end_countdown(opscope__torch_scope(fn));
    return opscope__torch_range_start(context, fn);
}

/* ---- end ------------------------------------------------------------------------------------- */

/* Not the innermost open range: one around it whose own end is missing, or none of this thread's. */
static void OPSCOPE__SELDOM end_seldom(struct open_stack *stack,
                                       const struct opscope__torch_function *fn)
{
    struct open_range *open = stack->top;
    while (open > stack->ranges && open[-1].fn != fn) {
        open--;
    }
    if (open == stack->ranges) {
        return; /* it was not looked at, or began on another thread */
    }
    close_from(stack, open - 1, fn);
}

void OPSCOPE__HOT opscope__torch_range_end(const struct opscope__torch_function *fn,
                                           struct opscope__torch_context *context)
{
    if (__builtin_expect(context != NULL, 0)) {
        opscope_range_close(&((struct moving_range *)(void *)context)->range);
        return;
    }
    struct open_stack *stack = own_stack;
    if (__builtin_expect(stack == NULL || stack->top == stack->ranges, 0)) {
        return;
    }
    struct open_range *last = stack->top - 1;
    if (__builtin_expect(last->fn != fn, 0)) {
        end_seldom(stack, fn);
        return;
    }
    close_range(stack, last, fn);
    stack->top = last; /* after callbacks have run, which may call operators */
}
