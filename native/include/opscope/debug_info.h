/* opscope/debug_info.h -- labels that follow the work: debug info and what carries it.
 *
 * The idea: debug info is an immutable chain for each thread. A guard pushes one key and value;
 * leaving restores exactly the chain that was there. A later key shadows an earlier one of the
 * same name. A captured state (debug info, local callbacks, the recording switch) can be entered
 * on another thread; fork tasks and backward passes do so.
 *
 * Threads: a chain belongs to its thread; nodes are shared and counted, so a state may be entered
 * on any number of threads at once. Forks: the child keeps the forking thread's chain.
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
    const char *value;
} opscope_debug_info;

/* What a push leaves behind for its pop. */
typedef struct opscope_debug_info_guard {
    const opscope_debug_info *previous;
    const opscope_debug_info *pushed;
} opscope_debug_info_guard;

/* Strings are copied (at most 64 KiB each; ERR_INVALID beyond, or for an empty key). */
OPSCOPE_API int opscope_debug_info_push(const char *key, const char *value,
                                        opscope_debug_info_guard *out);
OPSCOPE_API void opscope_debug_info_pop(opscope_debug_info_guard *guard);
/* The innermost link of this thread, NULL where there is none; valid until the next pop. */
OPSCOPE_API const opscope_debug_info *opscope_debug_info_current(void);
/* The value of `key` on this thread, or NULL. */
OPSCOPE_API const char *opscope_debug_info_get(const char *key);

/* A captured thread state: debug info, local callbacks and the recording switch. */
typedef struct opscope_state opscope_state;

OPSCOPE_API int opscope_state_capture(opscope_state **out);
OPSCOPE_API void opscope_state_release(opscope_state *state);
/* Makes this thread's state that of `state`; *previous is to be given to opscope_state_leave. */
OPSCOPE_API int opscope_state_enter(const opscope_state *state, opscope_state **previous);
OPSCOPE_API void opscope_state_leave(opscope_state *previous);
/* Has states carry one more word, of a library above this one that keeps it for each thread: `read`
 * gives the calling thread's, `exchange` makes `word` the calling thread's and returns the one
 * before. For good; ERR_FULL beyond 4. */
OPSCOPE_API int opscope_state_carry(uintptr_t (*read)(void), uintptr_t (*exchange)(uintptr_t word));

OPSCOPE_END_DECLS

#endif
