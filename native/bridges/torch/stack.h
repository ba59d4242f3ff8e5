/* torch/stack.h -- a thread's open PyTorch ranges, innermost last. */
#ifndef OPSCOPE_BRIDGES_TORCH_STACK_H
#define OPSCOPE_BRIDGES_TORCH_STACK_H

#include "bridges/torch/symbols.h"
#include "recorder/outer.h"

enum { OPSCOPE__TORCH_OPEN_LIMIT = 256 };

struct opscope__torch_open {
    const struct opscope__torch_function *fn; /* relaxed; NULL: lost, its end came elsewhere */
    unsigned uncaught_count;                  /* exceptions in flight when it started */
    bool is_reported;                         /* `outer` describes it, and `range` is not open */
    struct opscope__outer_range outer;
    opscope_range range;
    opscope_range_info info;
};

/* Owner: the thread. Others only search for a range that ends on them, with the lock of the stacks
 * held. A range they find stays there, because it is removed only at its end or under that lock. */
struct opscope__torch_stack {
    struct opscope__torch_open *top; /* the entry for the next range; relaxed */
    uint32_t lost_count; /* lost ranges among the open ones; relaxed, written under the lock */
    const struct opscope__cxx_exceptions *exceptions; /* of the thread */
    const struct opscope__torch_function *probed;     /* the range being timed; NULL: none */
    uint64_t probe_ticks;                             /* ticks of its start */
    uint64_t phase_bits; /* phase of all the thread's work, as in a cell's key; 0: none */
    struct opscope__torch_stack *next; /* lock of the stacks */
    struct opscope__torch_open ranges[OPSCOPE__TORCH_OPEN_LIMIT];
};

/* True if PyTorch calls the bridge for operators only some of the time: not all open ranges are
 * then known. Relaxed. */
extern bool opscope__torch_is_sampled;

/* The calling thread's stack; NULL before its first range. */
extern _Thread_local struct opscope__torch_stack *opscope__torch_stack;

/* What the calling thread's innermost call of the operator that begins blocks is about. A mode
 * calls the operator again, within the call, for the same block, or its kernel directly. PyTorch
 * then begins and ends ranges within the call, and the block's range in one of them. So that one is
 * left out, and the block followed here, from the outer call on. */
struct opscope__torch_block_call {
    uint64_t name;        /* of the block, as a hash; 0: no such call runs now */
    uint64_t began_ticks; /* when the block's range, which is left out, began; 0: not known */
    const struct opscope__torch_open *top; /* the stack's, as the call began; NULL: no stack */
    bool is_again;                         /* the call is such an inner one */
    bool has_left;                         /* a callback has left out the range */
};
extern _Thread_local struct opscope__torch_block_call opscope__torch_block_call;

/* Makes the calling thread's stack; NULL if memory ran out. */
struct opscope__torch_stack *opscope__torch_stack_make(void);
/* Removes lost ranges from the inner end of the calling thread's stack. */
void opscope__torch_stack_shed(struct opscope__torch_stack *stack);
/* Removes all ranges from `first` on, lost or not: the ends of the others are missing. */
void opscope__torch_stack_unwind(struct opscope__torch_stack *stack,
                                 struct opscope__torch_open *first);
/* True if there is room for one more range, after lost ranges are removed. */
bool opscope__torch_stack_make_room(struct opscope__torch_stack *stack);
/* Call it when a range ends on this thread that is not open on it: if it is open on another thread,
 * it is lost there. */
void opscope__torch_stack_ended_elsewhere(const struct opscope__torch_function *fn);

/* Maps PyTorch's id of a thread to ours; 0 if the thread has had no range, or is neither one of the
 * first nor of the latest. */
uint64_t opscope__torch_our_thread_id(uint64_t torch_id);

/* The calling thread's first range in a segment is about to be recorded: sets the phase of
 * everything that the thread does, if it is known. */
void opscope__torch_thread_recorded(void);

/* The thread ends: its open ranges are lost. */
void opscope__torch_stack_thread_ends(void);
/* For a fork; in the child, before the unlock, the stacks of other threads are dropped. */
void opscope__torch_stacks_lock(void);
void opscope__torch_stacks_unlock(void);
void opscope__torch_stacks_fork_child(void);

#endif
