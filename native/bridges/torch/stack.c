/* torch_stack.c -- the threads' stacks of open ranges, and what becomes of a range whose end does
 * not come on the thread that opened it: a record_function left on another thread, or never.
 *
 * Such a range is lost: the recorder leaves it out and counts it as dropped, once, as soon as that
 * is known. That is when it ends elsewhere, when a range around it ends, when there are too many of
 * them, when its thread ends. It is closed, for the other callbacks, by its own thread only.
 *
 * Lock: `lock` guards the list of stacks and all that is done to ranges not by their own end. Under
 * it no callback is run and no other lock is taken.
 */
#include "bridges/torch_stack.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "base/hot.h"
#include "bridges/torch_range.h"
#include "record/range.h"
#include "record/recorder.h"

enum { THREAD_LIMIT = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opscope__torch_stack *stacks; /* lock */

_Thread_local struct opscope__torch_stack *opscope__torch_stack;

/* By PyTorch's id of a thread: ours. Each written once, by the thread; relaxed. 0: not known. */
static uint64_t thread_ids[THREAD_LIMIT];

/* ---- life ------------------------------------------------------------------------------------ */

struct opscope__torch_stack *OPSCOPE__SELDOM opscope__torch_stack_make(void)
{
    const uint64_t torch_id = opscope__torch.thread_id();
    if (torch_id < THREAD_LIMIT) {
        /* Partner: the load in opscope__torch_our_thread_id. */
        opscope__store_relaxed(&thread_ids[torch_id], opscope_thread_id());
    }
    struct opscope__torch_stack *stack = malloc(sizeof *stack); /* large: touched as it is used */
    if (stack == NULL) {
        return NULL;
    }
    stack->top = stack->ranges;
    stack->lost_count = 0;
    stack->exceptions = opscope__torch.exceptions();
    opscope__torch_stacks_lock();
    stack->next = stacks;
    stacks = stack;
    opscope__torch_stacks_unlock();
    opscope__torch_seed_sampling();
    opscope__torch_stack = stack;
    return stack;
}

uint64_t opscope__torch_our_thread_id(uint64_t torch_id)
{
    return torch_id < THREAD_LIMIT ? opscope__load_relaxed(&thread_ids[torch_id]) : 0;
}

void opscope__torch_stack_thread_ends(void)
{
    struct opscope__torch_stack *stack = opscope__torch_stack;
    if (stack == NULL) {
        return;
    }
    opscope__torch_stack_unwind(stack, stack->ranges);
    opscope__torch_stack = NULL;
    opscope__torch_stacks_lock();
    struct opscope__torch_stack **link = &stacks;
    while (*link != stack) {
        link = &(*link)->next;
    }
    *link = stack->next;
    opscope__torch_stacks_unlock();
    free(stack);
}

void opscope__torch_stacks_lock(void)
{
    pthread_mutex_lock(&lock);
}

void opscope__torch_stacks_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void opscope__torch_stacks_fork_child(void)
{
    stacks = opscope__torch_stack; /* the others leak: their threads may have been writing there */
    if (stacks != NULL) {
        stacks->next = NULL;
    }
}

/* ---- ranges that are lost ------------------------------------------------------------------- */

/* With the lock held: true where it is to be counted, once the lock is given back. */
static bool lose(struct opscope__torch_stack *stack, struct opscope__torch_open *open)
{
    if (opscope__load_relaxed(&open->fn) == NULL) {
        return false; /* already */
    }
    /* Partners: the loads of the thread itself, which takes the lock before it acts on them. */
    opscope__store_relaxed(&open->fn, NULL);
    opscope__store_relaxed(&stack->lost_count, stack->lost_count + 1);
    return opscope__range_lose(&open->range);
}

/* Closes what is lost from `first` on, innermost first, and takes it off. Callbacks are run, which
 * may call operators: those come to lie above. */
static void close_lost(struct opscope__torch_stack *stack, struct opscope__torch_open *first)
{
    for (struct opscope__torch_open *open = stack->top; open-- > first;) {
        opscope__range_close_slow(&open->range);
        opscope__torch_stacks_lock();
        opscope__store_relaxed(&stack->lost_count, stack->lost_count - 1);
        opscope__store_relaxed(&stack->top, open); /* partner: the load of who looks for a range */
        opscope__torch_stacks_unlock();
    }
}

void OPSCOPE__SELDOM opscope__torch_stack_shed(struct opscope__torch_stack *stack)
{
    struct opscope__torch_open *first = stack->top;
    opscope__torch_stacks_lock();
    while (first > stack->ranges && opscope__load_relaxed(&first[-1].fn) == NULL) {
        first--;
    }
    opscope__torch_stacks_unlock();
    close_lost(stack, first);
}

void OPSCOPE__SELDOM opscope__torch_stack_unwind(struct opscope__torch_stack *stack,
                                                 struct opscope__torch_open *first)
{
    uint32_t new_count = 0;
    opscope__torch_stacks_lock();
    for (struct opscope__torch_open *open = first; open < stack->top; open++) {
        new_count += lose(stack, open);
    }
    opscope__torch_stacks_unlock();
    for (; new_count > 0; new_count--) {
        opscope__recorder_count_lost();
    }
    close_lost(stack, first);
}

void OPSCOPE__SELDOM opscope__torch_stack_ended_elsewhere(const struct opscope__torch_function *fn)
{
    bool is_counted = false;
    opscope__torch_stacks_lock();
    for (struct opscope__torch_stack *stack = stacks; stack != NULL; stack = stack->next) {
        /* What is open there and found here was there before this thread got hold of it. */
        struct opscope__torch_open *open = opscope__load_relaxed(&stack->top);
        while (open > stack->ranges && opscope__load_relaxed(&open[-1].fn) != fn) {
            open--;
        }
        if (open > stack->ranges) {
            is_counted = lose(stack, open - 1);
            break;
        }
    }
    opscope__torch_stacks_unlock();
    if (is_counted) {
        opscope__recorder_count_lost();
    }
}
