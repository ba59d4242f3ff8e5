/* trace/trace.h -- the tracer's parts: the record of a range (range.c), the life cycle (life.c),
 * the file and its blocks (block.c), tasks and memory (task.c).
 *
 * A thread may touch the memory of a trace as long as its own snapshot refers to the tracer's
 * callback. The callback's drop frees the memory, and only the thread itself gives up its
 * snapshots. So the callback needs no check; other code that writes records asks
 * opscope__trace_here, which searches the snapshot. When a trace stops, private memory replaces its
 * file at once, so that a thread with an old snapshot does not hold on to the file.
 */
#ifndef OPSCOPE_TRACE_TRACE_H
#define OPSCOPE_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hot.h"
#include "opscope/trace.h"
#include "record/thread.h"

/* One trace of this process. All fields are written before the callback is registered, except those
 * marked. */
struct opscope__trace {
    uint64_t serial; /* counts this process's traces, from 1: detects stale state of threads */
    uint64_t deadline_ticks; /* UINT64_MAX: no deadline */
    char *base;              /* limit_bytes long */
    uint64_t limit_bytes;
    uint64_t claimed_bytes; /* atomic, relaxed: added to by each thread that takes a block */
    uint64_t ready_bytes;   /* of the file: pages below may be touched from the start on */
    bool is_scratch;        /* measures the cost of a range; has no blocks */
    /* Ends the trace once the deadline has passed, unless another thread holds the trace lock. */
    void (*expire)(const struct opscope__trace *trace);
    uint32_t reference_count; /* atomic: held by life.c, by the callback, by running tasks */
    opscope_handle handle;    /* trace lock */
    bool is_requested;        /* trace lock: another process requested it */
    uint64_t request_serial;
    uint8_t *op_is_named; /* by operator id; atomic, relaxed: 1 once a block has the name */
};

/* Owner: the thread. */
struct opscope__trace_thread {
    uint64_t *next;
    uint64_t *limit;            /* records up to here need no further check; at most `end` */
    uint64_t *end;              /* end of the block */
    uint64_t serial;            /* of the trace that this state belongs to */
    opscope_trace_block *block; /* NULL: no block in this trace yet */
    uint64_t block_bytes;       /* of the next block */
    bool is_full;               /* the trace has no more blocks */
    bool has_labels;            /* the thread's last LABELS record is not empty */
    bool labels_are_stale;
};

/* range.c: the callback, and its variant for a trace with shapes. */
int opscope__trace_range_start(const opscope_range *fn, void *user, void **context);
int opscope__trace_range_start_shapes(const opscope_range *fn, void *user, void **context);
int opscope__trace_range_end(const opscope_range *fn, void *user, void *context);
enum { OPSCOPE__TRACE_RECORD_WORDS = sizeof(opscope_trace_record) / sizeof(uint64_t) };

static inline uint64_t *opscope__trace_words(opscope_trace_record *record)
{
    return (uint64_t *)(void *)(record + 1);
}

static inline bool opscope__trace_is_tracer(const opscope_callback *spec)
{
    return spec->start == opscope__trace_range_start ||
           spec->start == opscope__trace_range_start_shapes;
}

/* Cold: this thread's state for that trace, with its labels written; NULL if memory runs out. */
struct opscope__trace_thread *opscope__trace_thread_open(struct opscope__trace *trace,
                                                         struct opscope__thread *thread);
/* Cold: a record followed by `more` words, all zero except `more`; NULL if there is no room. */
opscope_trace_record *opscope__trace_take(struct opscope__trace *trace,
                                          struct opscope__trace_thread *state, uint32_t more);

/* Counts a record for which there is no room. `state` may be NULL. */
void opscope__trace_lose(struct opscope__trace *trace, const struct opscope__trace_thread *state);

/* room.c. The size limit of a trace in that file; ERR_NO_SPACE or ERR_NO_MEMORY if it is below a
 * megabyte. */
int opscope__trace_find_size(int fd, uint64_t wanted_bytes, uint64_t *out);
/* The same for an empty file in that directory, which traces of other processes share; gives the
 * file that size. */
int opscope__trace_share(int directory_fd, int fd, uint64_t wanted_bytes, uint64_t *out);

/* block.c. */
int opscope__trace_map(struct opscope__trace *trace, int fd, uint64_t bytes);
bool opscope__trace_block_open(struct opscope__trace *trace, struct opscope__trace_thread *state,
                               uint64_t thread_id);
/* Replaces the file by private memory; see the top. */
void opscope__trace_let_go(struct opscope__trace *trace);
void opscope__trace_unmap(struct opscope__trace *trace);

static inline opscope_trace_header *opscope__trace_header(const struct opscope__trace *trace)
{
    return (opscope_trace_header *)(void *)trace->base;
}

/* task.c. The trace that observes this thread now, or NULL; the thread's state in *out. */
struct opscope__trace *opscope__trace_here(struct opscope__trace_thread **out);

void opscope__trace_allocation(uint64_t bytes);

/* life.c. Whether a trace runs. Set with store_release and read with load_acquire, so that the
 * clock has been measured; a thread that reads it late misses the first records. */
extern OPSCOPE__INTERNAL uint32_t opscope__trace_is_on;
void opscope__trace_release(void *trace);

#endif
