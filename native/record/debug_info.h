/* record/debug_info.h -- the nodes behind opscope/debug_info.h, for the recorder and the threads. */
#ifndef OPSCOPE_RECORD_DEBUG_INFO_H
#define OPSCOPE_RECORD_DEBUG_INFO_H

#include <stdint.h>

#include "opscope/debug_info.h"

/* A link as it is kept. Immutable but for the two last fields. */
struct opscope__debug_info_node {
    opscope_debug_info link; /* first: callbacks see its address */
    uint32_t reference_count; /* atomic */
    /* The label set of the chain that starts here: the segment's epoch << 32 | id, looked up by the
     * recorder. Atomic, relaxed: any thread would compute the same value. */
    uint64_t label_set;
};

/* NULL is a chain, the empty one. Both return or take one reference. */
const opscope_debug_info *opscope__debug_info_retain(const opscope_debug_info *link);
void opscope__debug_info_release(const opscope_debug_info *link);

/* The chain a new thread starts with: the labels the process inherited (OPSCOPE_DEBUG_INFO),
 * with a reference for the caller. */
const opscope_debug_info *opscope__debug_info_root(void);

#endif
