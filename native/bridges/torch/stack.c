/* torch/stack.c -- the threads' stacks of open ranges, and the handling of a range whose end does
 * not come on the thread that opened it: a record_function left on another thread, or never.
 *
 * Such a range is lost: the recorder leaves it out and counts it as dropped, once, as soon as the
 * loss is known. That is when it ends elsewhere, when an enclosing range ends, when there are too
 * many of them, or when its thread ends. Only its own thread closes it, for the other callbacks.
 *
 * Lock: `lock` guards the list of stacks, and every change of a range except at its own end. No
 * callback runs and no other lock is taken under it.
 */
#include "bridges/torch/stack.h"

#include <stdlib.h>
#include <sys/prctl.h>

#include "base/atomics.h"
#include "base/hot.h"
#include "record/range.h"
#include "recorder/cost.h"
#include "recorder/recorder.h"
#include "segment/sandbox.h"

enum { THREAD_LIMIT = 2048, THREAD_NAME_BYTES = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opscope__torch_stack *stacks; /* lock */

_Thread_local struct opscope__torch_stack *opscope__torch_stack;
_Thread_local struct opscope__torch_block_call opscope__torch_block_call;

bool opscope__torch_is_sampled;

/* Maps PyTorch's id of a thread to ours, both of which count the threads of the process: for the
 * first threads, among them the main one, and for the latest. An entry has PyTorch's id in its
 * upper half and ours in its lower one, so that it is read and written as a whole; relaxed. 0:
 * none. */
static uint64_t thread_ids[2 * THREAD_LIMIT];

static uint64_t *place_of(uint64_t torch_id)
{
    return &thread_ids[torch_id < THREAD_LIMIT ? torch_id : THREAD_LIMIT + torch_id % THREAD_LIMIT];
}

static uint64_t upper_half(uint64_t torch_id)
{
    return torch_id << 32;
}

/* ---- phases ----------------------------------------------------------------------------------- */

/* From PyTorch 2.5 on, a DataLoader's worker process names its thread before it calls an operator,
 * and so does the thread that copies batches to pinned memory, in the program's own process
 * (worker.py and pin_memory.py in torch/utils/data/_utils). Nothing encloses their operators, and
 * all of them are data loading. */
static uint64_t phase_of_thread(void)
{
    char name[THREAD_NAME_BYTES] = "";
    if (opscope__sandbox_is_likely()) {
        return 0; /* a filter may end the process at this call */
    }
    (void)prctl(PR_GET_NAME, name);
    const bool is_loader = strcmp(name, "pt_data_worker") == 0 || strcmp(name, "pt_data_pin") == 0;
    return is_loader ? OPSCOPE__PHASE_BITS(OPSCOPE_DATA) : 0;
}

void opscope__torch_thread_recorded(void)
{
    const uint64_t phase_bits = phase_of_thread();
    if (phase_bits != 0) {
        opscope__hot.phase_bits = phase_bits;
    }
    if (opscope__torch_stack != NULL) {
        opscope__torch_stack->phase_bits = phase_bits; /* a forked child has its parent's */
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

struct opscope__torch_stack *OPSCOPE__COLD opscope__torch_stack_make(void)
{
    const uint64_t start_ns = opscope__cost_setup_start();
    const uint64_t torch_id = opscope__torch.thread_id();
    const uint64_t our_id = opscope_thread_id(); /* registers the thread */
    /* Partner: the load in opscope__torch_our_thread_id. */
    opscope__store_relaxed(place_of(torch_id), upper_half(torch_id) | (uint32_t)our_id);
    struct opscope__torch_stack *stack =
        malloc(sizeof *stack); /* large: only the pages in use are touched */
    if (stack == NULL) {
        return NULL;
    }
    stack->top = stack->ranges;
    stack->lost_count = 0;
    stack->probed = NULL;
    stack->phase_bits = phase_of_thread();
    stack->exceptions = opscope__torch.exceptions();
    opscope__torch_stacks_lock();
    stack->next = stacks;
    stacks = stack;
    opscope__torch_stacks_unlock();
    opscope__torch_seed_sampling();
    opscope__torch_stack = stack;
    opscope__cost_setup_end(start_ns);
    return stack;
}

uint64_t opscope__torch_our_thread_id(uint64_t torch_id)
{
    const uint64_t entry = opscope__load_relaxed(place_of(torch_id));
    return entry - (uint32_t)entry == upper_half(torch_id) ? (uint32_t)entry : 0;
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

/* With the lock held: returns true if the caller should count the range as lost after it releases
 * the lock. */
static bool lose(struct opscope__torch_stack *stack, struct opscope__torch_open *open)
{
    if (opscope__load_relaxed(&open->fn) == NULL) {
        return false; /* already lost */
    }
    /* Partners: the loads of the thread itself, which takes the lock before it acts on them. */
    opscope__store_relaxed(&open->fn, NULL);
    opscope__store_relaxed(&stack->lost_count, stack->lost_count + 1);
    /* One that was reported is the recorder's, and of its own thread. */
    return open->is_reported || opscope__range_lose(&open->range);
}

/* Closes the lost ranges from `first` on, innermost first, and removes them. Callbacks run
 * meanwhile, and may call operators, whose ranges go on top. */
static void close_lost(struct opscope__torch_stack *stack, struct opscope__torch_open *first)
{
    for (struct opscope__torch_open *open = stack->top; open-- > first;) {
        if (open->is_reported) {
            opscope__outer_lose(&open->outer);
        } else {
            opscope__range_close_slow(&open->range);
        }
        opscope__torch_stacks_lock();
        opscope__store_relaxed(&stack->lost_count, stack->lost_count - 1);
        opscope__store_relaxed(&stack->top,
                               open); /* partner: the load of threads that search for a range */
        opscope__torch_stacks_unlock();
    }
}

void OPSCOPE__COLD opscope__torch_stack_shed(struct opscope__torch_stack *stack)
{
    struct opscope__torch_open *first = stack->top;
    opscope__torch_stacks_lock();
    while (first > stack->ranges && opscope__load_relaxed(&first[-1].fn) == NULL) {
        first--;
    }
    opscope__torch_stacks_unlock();
    close_lost(stack, first);
}

void OPSCOPE__COLD opscope__torch_stack_unwind(struct opscope__torch_stack *stack,
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

bool OPSCOPE__COLD opscope__torch_stack_make_room(struct opscope__torch_stack *stack)
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

void OPSCOPE__COLD opscope__torch_stack_ended_elsewhere(const struct opscope__torch_function *fn)
{
    bool is_counted = false;
    opscope__torch_stacks_lock();
    for (struct opscope__torch_stack *stack = stacks; stack != NULL; stack = stack->next) {
        /* A range found here was on the stack before this thread got the lock. */
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
