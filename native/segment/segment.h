/* segment/segment.h -- the writer's side of the segment: its file, its chunks, its dictionary.
 *
 * A process has one segment at a time. Call everything except the inline functions with the segment
 * lock held. opscope/segment.h has the layout.
 */
#ifndef OPSCOPE_SEGMENT_SEGMENT_H
#define OPSCOPE_SEGMENT_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opscope/segment.h"

/* The operator for ranges without a cell of their own (opscope_op_other); no dictionary has it. */
enum { OPSCOPE__OTHER_OP_ID = 1 };

typedef struct opscope__segment {
    char *base;              /* mapping at its maximum size; NULL: no segment */
    uint64_t reserved_bytes; /* of the file: pages below have blocks and may be touched */
    uint64_t limit_bytes;    /* the file's size, up to which it may grow */
    bool grows_by_path;      /* the kernel cannot reserve blocks through the mapping */
    struct opscope_chunk *dictionary;
    bool is_full;           /* a chunk was refused; never reset. Atomic, relaxed */
    uint64_t device, inode; /* identify the file */
    uint32_t epoch; /* number of this segment in the process, from 1; increases with each segment */
    char path[256];
} opscope__segment;

void opscope__segment_lock(void);
void opscope__segment_unlock(void);

/* Creates the file under a hidden name, maps it and fills in its header. Readers do not see it
 * yet. */
int opscope__segment_create(opscope__segment *segment, const char *directory);
/* Renames the file to its public name: readers see it from now on. */
int opscope__segment_publish(opscope__segment *segment);

static inline opscope_segment_header *opscope__segment_header(const opscope__segment *segment)
{
    return (opscope_segment_header *)(void *)segment->base;
}

/* Adds a chunk of that kind, zeroed, with its header filled in except for `used`; NULL if there is
 * no room. */
opscope_chunk *opscope__segment_add_chunk(opscope__segment *segment, uint32_t kind, uint32_t table,
                                          uint32_t first);
/* Appends to the dictionary; false if there is no room. The text has `entry->bytes` bytes: at most
 * a chunk less its header and the entry's (16,304). */
bool opscope__segment_add_entry(opscope__segment *segment, const opscope_entry *entry,
                                const char *text);

/* Marks the file closed (or removes it) and releases it. Private memory replaces the mapping and
 * stays, because a thread may be in the middle of a store. */
void opscope__segment_close(opscope__segment *segment, bool discard);
/* In a forked child: releases the parent's file without changing it. */
void opscope__segment_abandon(opscope__segment *segment);

#endif
