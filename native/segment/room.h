/* segment/room.h -- limits how much of a file system Opscope's files take.
 *
 * /dev/shm is also the program's own shared memory: if it is full, the program's next store there
 * raises SIGBUS. Therefore all files in one directory together keep to a budget, with or without an
 * agent:
 *
 *   segments   hold at most a quarter of the file system, and at most half of the space that would
 *              be free without them
 *   growth     a new segment is promised the space it may still grow by: a part of what the others
 *              left. All promises together are at most half of the segments' limit
 *   traces     everything held and promised, including traces, is at most half of the file system
 *              and half of the space that would be free. Each new trace is promised at most half of
 *              what the others left
 *
 * The promise is the file's size; the file holds its blocks. Every process can read both from the
 * directory, so processes need no communication. If segments would hold too much, a process that
 * starts removes those of ended processes, oldest first (segment/reclaim.c); an agent would have
 * collected them long before.
 *
 * Concurrency. There is no lock between processes: a process stopped while it holds one would delay
 * the start of every other program. Instead, each process checks the directory, reserves its
 * blocks, and checks again (segment/segment.c). The second check sees the blocks of every process
 * that reserved before it. If several processes take the last room at once, at least the last of
 * them finds the limit exceeded, and makes room or releases its own blocks: when no process is
 * starting, the budget holds. Meanwhile the files may exceed it by 128 KiB for each process that is
 * starting, and the promises of growth by an eighth of the space left for each process that starts
 * within the same few microseconds. No process ever touches a page without a block, whatever was
 * promised.
 *
 * A check reads at most OPSCOPE__ROOM_FILES names. In a directory with more, on a file system with
 * more in use than segments may hold, each process that starts removes twice the space it takes.
 */
#ifndef OPSCOPE_SEGMENT_ROOM_H
#define OPSCOPE_SEGMENT_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct opscope__room {
    uint64_t size_bytes, free_bytes; /* of the file system; INT64_MAX: no limit */
    uint64_t held_bytes;             /* by this user's files in the directory */
    uint64_t growth_bytes;           /* promised to segments */
    uint64_t trace_bytes;            /* promised to traces */
    bool is_cut;                     /* there are more files than the check reads */
};

/* ERR_IO if the file system gives no figures. */
int opscope__room_read(int directory_fd, struct opscope__room *out);

/* How far segments would exceed their limit with `bytes` more; 0: there is room. */
uint64_t opscope__room_excess(const struct opscope__room *room, uint64_t bytes);
/* Bytes that a new segment may be promised, at most `most`. */
uint64_t opscope__room_growth(const struct opscope__room *room, uint64_t most);
/* Bytes that a new trace may be promised, at most `most`. */
uint64_t opscope__room_trace(const struct opscope__room *room, uint64_t most);
/* True if everything held and promised, including traces, is within the limit. */
bool opscope__room_holds(const struct opscope__room *room);

/* Makes room for `bytes` more in segments, if necessary. *room gets the state before any removal,
 * or upper bounds if those suffice. *discarded_count increases by the number of removed segments of
 * ended processes. ERR_NO_SPACE, and nothing is removed, if removing them all would not suffice. */
int opscope__room_make(int directory_fd, uint64_t bytes, struct opscope__room *room,
                       uint64_t *discarded_count);

/* Allocates blocks for all pages that have a part of these bytes, so that touching them cannot
 * fail. ERR_NO_SPACE, ERR_NO_MEMORY; ERR_UNSUPPORTED on kernels before 5.14, which cannot do it. */
int opscope__room_populate(char *start, uint64_t bytes);

#endif
