/* opscope/debug_info.h -- debug info: labels that follow the work, and the states that carry them.
 *
 * The idea: debug info is an immutable chain for each thread. A guard pushes one key and value;
 * popping it restores exactly the previous chain. A later link shadows an earlier one with the same
 * key. A link without a value masks its key: inside the block that key has no label. A captured
 * state (debug info, local callbacks, the recording switch) can be entered on another thread; fork
 * tasks and backward passes do so.
 *
 * Threads: a chain belongs to its thread; nodes are shared and reference-counted, so any number of
 * threads may enter one state at once. Forks: the child keeps the forking thread's chain.
 *
 *     opscope_debug_info_guard guard;
 *     opscope_debug_info_push("model_id", "resnet", &guard);
 *     ...                                   // ranges opened here carry model_id=resnet
 *     opscope_debug_info_pop(&guard);
 */
#ifndef OPSCOPE_DEBUG_INFO_H
#define OPSCOPE_DEBUG_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

/* One link. The chain ends with NULL. */
typedef struct opscope_debug_info {
    const struct opscope_debug_info *parent;
    const char *key;
    const char *value; /* NULL: masks the key, here and in all links behind */
} opscope_debug_info;

/* A push fills it in for the matching pop. */
typedef struct opscope_debug_info_guard {
    const opscope_debug_info *previous;
    const opscope_debug_info *pushed;
} opscope_debug_info_guard;

/* Copies the strings (at most 64 KiB each; ERR_INVALID beyond, or for an empty key). A `value` of
 * NULL masks the key until the pop, for this thread and for all tasks and threads that take over
 * its labels. */
OPSCOPE_API int opscope_debug_info_push(const char *key, const char *value,
                                        opscope_debug_info_guard *out);
OPSCOPE_API void opscope_debug_info_pop(opscope_debug_info_guard *guard);
/* The innermost link of this thread, or NULL if its chain is empty; valid until the next pop. */
OPSCOPE_API const opscope_debug_info *opscope_debug_info_current(void);
/* The value of `key` on this thread; NULL if the chain has no such key or masks it. */
OPSCOPE_API const char *opscope_debug_info_get(const char *key);

/* For schedulers that run several tasks on one thread in turn. Takes a reference to the chain of
 * this thread, which stays valid until opscope_debug_info_release; NULL is the empty chain. */
OPSCOPE_API const opscope_debug_info *opscope_debug_info_hold(void);
OPSCOPE_API void opscope_debug_info_release(const opscope_debug_info *chain);
/* Makes `chain` the chain of this thread; the caller keeps its reference. Before a pop, the
 * thread's chain must be the one that the matching push, and the pops of later guards, left. */
OPSCOPE_API void opscope_debug_info_switch(const opscope_debug_info *chain);

/* A captured thread state: debug info, local callbacks and the recording switch. */
typedef struct opscope_state opscope_state;

OPSCOPE_API int opscope_state_capture(opscope_state **out);
OPSCOPE_API void opscope_state_release(opscope_state *state);
/* Makes this thread's state that of `state`. The caller passes *previous to opscope_state_leave. */
OPSCOPE_API int opscope_state_enter(const opscope_state *state, opscope_state **previous);
OPSCOPE_API void opscope_state_leave(opscope_state *previous);
/* Adds one more word to all states, for a library above this one that keeps such a word for each
 * thread. `read` returns the calling thread's word; `exchange` sets it to `word` and returns the
 * previous one. The registration is permanent; ERR_FULL beyond 4. */
OPSCOPE_API int opscope_state_carry(uintptr_t (*read)(void), uintptr_t (*exchange)(uintptr_t word));

OPSCOPE_END_DECLS

#endif
