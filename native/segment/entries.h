/* segment/entries.h -- entries of one size in chunks of their own, of which only one thread at a
 * time adds any, and other processes read. */
#ifndef OPSCOPE_SEGMENT_ENTRIES_H
#define OPSCOPE_SEGMENT_ENTRIES_H

#include <stddef.h>
#include <string.h>

#include "base/atomics.h"
#include "segment/segment.h"

typedef struct opscope__entries {
    opscope_chunk *chunk; /* being filled; NULL: none yet, of this segment */
    uint32_t count;
} opscope__entries;

/* With the segment lock held: the room for another entry of that size; NULL if there is none.
 * Complete it, and then call opscope__entries_add. */
void *opscope__entries_room(opscope__segment *segment, uint32_t kind, size_t bytes,
                            opscope__entries *entries);
void opscope__entries_add(opscope__entries *entries);

/* Writes a field of an entry, at any time. */
static inline void opscope__entries_show(double *field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    /* Partner: the reader of the file; each value is independent of other memory. */
    opscope__store_relaxed((uint64_t *)(void *)field, bits);
}

#endif
