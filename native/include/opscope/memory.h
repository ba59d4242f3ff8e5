/* opscope/memory.h -- reports to the recorder what an operator allocates.
 *
 * The idea: an allocator reports how many bytes it hands out. The recorder adds them to the
 * innermost open range of this thread, as it does with self time: the operator that allocates gets
 * the bytes, the operators around it do not. Bytes allocated outside all ranges are in no
 * operator's sum.
 *
 * Bytes are known only while every range is recorded, in a window or at probability 1: otherwise
 * the range that allocates may be an unobserved one, and nothing is added. A range that outlasts
 * its window gets the bytes that it allocated inside the window.
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
    if (opscope__hot.thread != NULL) { /* NULL: this thread never observed a range */
        opscope__note_allocation(bytes);
    }
}

OPSCOPE_END_DECLS

#endif
