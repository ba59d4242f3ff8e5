/* record/segment.h -- the writer's side of the segment: its file, its chunks, its dictionary.
 *
 * One segment at a time. Everything but the inline functions is called with the segment lock held.
 * The layout is in opscope/segment.h.
 */
#ifndef OPSCOPE_RECORD_SEGMENT_H
#define OPSCOPE_RECORD_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opscope/segment.h"

typedef struct opscope__segment {
    char *base;              /* mapping of the largest size; NULL: no segment */
    uint64_t reserved_bytes; /* of the file: up to here pages may be touched */
    struct opscope_chunk *dictionary;
    bool is_full;           /* a chunk was refused; stays so. Atomic, relaxed */
    uint64_t device, inode; /* of the file, to know it again */
    uint32_t epoch;         /* which segment of this process: goes up with each, from 1 */
    char path[256];
} opscope__segment;

void opscope__segment_lock(void);
void opscope__segment_unlock(void);

/* Makes the file under a hidden name, maps it and fills in its header: not yet seen by readers. */
int opscope__segment_create(opscope__segment *segment, const char *directory);
/* Gives the file its name: from now on readers see it. */
int opscope__segment_publish(opscope__segment *segment);

static inline opscope_segment_header *opscope__segment_header(const opscope__segment *segment)
{
    return (opscope_segment_header *)(void *)segment->base;
}

/* A chunk of that kind, zeroed, its header filled in but for `used`; NULL where there is no room.
 */
opscope_chunk *opscope__segment_add_chunk(opscope__segment *segment, uint32_t kind, uint32_t table,
                                          uint32_t first);
/* Appends to the dictionary; false where there is no room. The text has `entry->bytes`, at most 64
 * KiB less headers of a chunk (16,304). */
bool opscope__segment_add_entry(opscope__segment *segment, const opscope_entry *entry,
                                const char *text);

/* Marks the file closed (or removes it) and lets go of it. The mapping is replaced by private
 * memory and stays, as a thread may be in the middle of a store. */
void opscope__segment_close(opscope__segment *segment, bool discard);
/* In a forked child: lets go of the parent's file without a word to it. */
void opscope__segment_abandon(opscope__segment *segment);

#endif
