/* torch_stack.h -- a thread's open ranges of PyTorch's, innermost last. */
#ifndef OPSCOPE_BRIDGES_TORCH_STACK_H
#define OPSCOPE_BRIDGES_TORCH_STACK_H

#include "bridges/torch_symbols.h"

enum { OPSCOPE__TORCH_OPEN_LIMIT = 256 };

struct opscope__torch_open {
    const struct opscope__torch_function *fn; /* relaxed; NULL: lost, its end came elsewhere */
    opscope_range range;
    opscope_range_info info;
    unsigned uncaught_count; /* exceptions on their way when it started */
};

/* Owner: the thread. Others only look for a range that ends on them, holding the lock of the
 * stacks: what they find stays, as it is taken off at its end, or under that lock. */
struct opscope__torch_stack {
    struct opscope__torch_open *top; /* the place for the next; relaxed */
    uint32_t lost_count;             /* of the open ones; relaxed, written under the lock */
    const struct opscope__cxx_exceptions *exceptions; /* of the thread */
    struct opscope__torch_stack *next;                /* lock of the stacks */
    struct opscope__torch_open ranges[OPSCOPE__TORCH_OPEN_LIMIT];
};

/* The calling thread's; NULL before its first range. */
extern _Thread_local struct opscope__torch_stack *opscope__torch_stack;

/* Makes it; NULL where memory ran out. */
struct opscope__torch_stack *opscope__torch_stack_make(void);
/* Takes off what is lost of the calling thread's innermost ranges. */
void opscope__torch_stack_shed(struct opscope__torch_stack *stack);
/* Takes off all from `first` on, lost or not: the ends of the others are missing. */
void opscope__torch_stack_unwind(struct opscope__torch_stack *stack,
                                 struct opscope__torch_open *first);
/* A range ends on this thread that is not open on it: where it is on another, it is lost there. */
void opscope__torch_stack_ended_elsewhere(const struct opscope__torch_function *fn);

/* Our id of a thread, by PyTorch's: seldom asked for; 0 where it has had no range. */
uint64_t opscope__torch_our_thread_id(uint64_t torch_id);

/* The thread ends: its open ranges are lost. */
void opscope__torch_stack_thread_ends(void);
/* For the time of a fork; in the child, before the unlock, the others' stacks are let go. */
void opscope__torch_stacks_lock(void);
void opscope__torch_stacks_unlock(void);
void opscope__torch_stacks_fork_child(void);

#endif
