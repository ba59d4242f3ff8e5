/* record/debug_info.h -- the nodes behind opscope/debug_info.h, for the recorder and the threads.
 */
#ifndef OPSCOPE_RECORD_DEBUG_INFO_H
#define OPSCOPE_RECORD_DEBUG_INFO_H

#include <stdint.h>

#include "opscope/debug_info.h"

/* A link in memory. Immutable except for the last two fields. */
struct opscope__debug_info_node {
    opscope_debug_info link;  /* first: callbacks see its address */
    uint32_t reference_count; /* atomic */
    /* The label set of the chain that starts here: the segment's epoch << 32 | id, found by the
     * recorder. Atomic, relaxed: any thread would compute the same value. */
    uint64_t label_set;
};

/* Keys and values are shorter than this, in bytes. */
enum { OPSCOPE__DEBUG_INFO_BYTES = 65536 };

/* Parses lines of the form key=value and returns the chain, with a reference; skips other lines. */
const opscope_debug_info *opscope__debug_info_parse(const char *text);

/* NULL is the empty chain. Retain returns a new reference; release takes one. */
OPSCOPE_API const opscope_debug_info *opscope__debug_info_retain(const opscope_debug_info *link);
OPSCOPE_API void opscope__debug_info_release(const opscope_debug_info *link);

/* Makes `chain` the thread's chain and takes over the caller's reference; returns the previous
 * chain, with its reference. */
OPSCOPE_API const opscope_debug_info *opscope__debug_info_swap(const opscope_debug_info *chain);

/* A listener lives as long as the process. Its functions run on the thread whose labels change. */
struct opscope__debug_info_listener {
    void (*will_change)(void); /* before a guard's push or pop; may swap the chain; or NULL */
    void (*changed)(const opscope_debug_info *chain); /* the thread's chain has changed */
};
OPSCOPE_API void opscope__debug_info_listen(const struct opscope__debug_info_listener *listener);

struct opscope__thread;
/* For the record layer: call it after a change. */
void opscope__debug_info_changed(const struct opscope__thread *thread);

#endif
