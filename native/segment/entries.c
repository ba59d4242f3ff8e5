/* segment/entries.c -- see segment/entries.h. */
#include "segment/entries.h"

void *opscope__entries_room(opscope__segment *segment, uint32_t kind, size_t bytes,
                            opscope__entries *entries)
{
    const size_t limit = (OPSCOPE_SEGMENT_CHUNK_BYTES - OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES) / bytes;
    if (entries->chunk == NULL || entries->chunk->used == limit) {
        opscope_chunk *added = opscope__segment_add_chunk(segment, kind, 0, entries->count);
        if (added == NULL) {
            return NULL;
        }
        entries->chunk = added;
    }
    return (char *)entries->chunk + OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES +
           entries->chunk->used * bytes;
}

void opscope__entries_add(opscope__entries *entries)
{
    entries->count++;
    /* Partner: the reader's load of `used`. */
    opscope__store_release(&entries->chunk->used, entries->chunk->used + 1);
}
