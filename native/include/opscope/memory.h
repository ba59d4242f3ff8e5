/* opscope/memory.h -- telling the recorder what an operator allocates.
 *
 * The idea: an allocator says how many bytes it gives out; they are added to the innermost range
 * that is open on this thread, as self time is: the operator that allocates has them, not those
 * around it. Where no range is open they are in no operator's sum.
 *
 * Known only while every range is recorded, in a window or at probability 1: otherwise the range
 * that allocates may be one that nobody saw, and nothing is added. A range that outlasts its window
 * has what it allocated within.
 *
 * Threads: any, without a lock. Forks: nothing to do.
 *
 *     void *data = malloc(bytes);
 *     opscope_note_allocation(bytes);
 */
#ifndef OPSCOPE_MEMORY_H
#define OPSCOPE_MEMORY_H

#include "opscope/range_inline.h"

OPSCOPE_BEGIN_DECLS

OPSCOPE_API void opscope__note_allocation(uint64_t bytes);

static inline void opscope_note_allocation(uint64_t bytes)
{
    if (opscope__hot.thread != NULL) { /* else no range was ever looked at on this thread */
        opscope__note_allocation(bytes);
    }
}

OPSCOPE_END_DECLS

#endif
