/* record/debug_info.h -- the nodes behind opscope/debug_info.h, for the recorder and the threads.
 */
#ifndef OPSCOPE_RECORD_DEBUG_INFO_H
#define OPSCOPE_RECORD_DEBUG_INFO_H

#include <stdint.h>

#include "opscope/debug_info.h"

/* A link as it is kept. Immutable but for the two last fields. */
struct opscope__debug_info_node {
    opscope_debug_info link;  /* first: callbacks see its address */
    uint32_t reference_count; /* atomic */
    /* The label set of the chain that starts here: the segment's epoch << 32 | id, looked up by the
     * recorder. Atomic, relaxed: any thread would compute the same value. */
    uint64_t label_set;
};

/* NULL is a chain, the empty one. Both return or take one reference. */
OPSCOPE_API const opscope_debug_info *opscope__debug_info_retain(const opscope_debug_info *link);
OPSCOPE_API void opscope__debug_info_release(const opscope_debug_info *link);

/* Makes `chain`, with the caller's reference, the thread's; returns what was, with a reference. */
OPSCOPE_API const opscope_debug_info *opscope__debug_info_swap(const opscope_debug_info *chain);

/* There is one listener, which lives as long as the process. It is called on each thread. */
struct opscope__debug_info_listener {
    void (*will_change)(void); /* before a guard's push or pop; may swap the chain */
    void (*changed)(const opscope_debug_info *chain); /* it has become another */
};
OPSCOPE_API void opscope__debug_info_listen(const struct opscope__debug_info_listener *listener);

struct opscope__thread;
/* For the record layer: after a change. */
void opscope__debug_info_changed(const struct opscope__thread *thread);

/* The chain a new thread starts with: the labels the process inherited (OPSCOPE_DEBUG_INFO),
 * with a reference for the caller. */
const opscope_debug_info *opscope__debug_info_root(void);

#endif
