/* record/trace.h -- the tracer's parts: its record of a range (trace.c), its life (trace_life.c),
 * its file and the blocks that threads take of it (trace_block.c), tasks and memory (trace_task.c).
 *
 * How long may a thread touch the memory of a trace? As long as a firing of its own refers to the
 * tracer's callback: the memory goes with the callback's drop, and a thread's firings are given up
 * by that thread alone. So the callback itself needs nothing, and what else writes records asks
 * opscope__trace_here, which looks into the firing. When a trace stops, its memory is replaced by
 * private one at once, so that the file is let go of whoever still has a firing.
 */
#ifndef OPSCOPE_RECORD_TRACE_H
#define OPSCOPE_RECORD_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/trace.h"
#include "record/thread.h"

/* One trace of this process. All but the marked is written before the callback is registered. */
struct opscope__trace {
    uint64_t serial;         /* of this process's traces, from 1: tells stale state of threads */
    uint64_t deadline_ticks; /* UINT64_MAX: none */
    char *base;              /* of limit_bytes */
    uint64_t limit_bytes;
    uint64_t claimed_bytes;   /* atomic, relaxed: any thread that takes a block */
    uint64_t ready_bytes;     /* of the file: up to here pages may be touched from the start on */
    bool is_scratch;          /* of the measuring of its cost: no blocks to be had */
    uint32_t reference_count; /* atomic: of trace_life.c, of the callback, of tasks that run */
    opscope_handle handle;    /* trace lock */
    bool is_wished;           /* trace lock: by another process */
    uint64_t wish_serial;
    uint8_t *op_is_named; /* by operator id; atomic, relaxed: 1 once a block has the name */
};

/* Owner: the thread. */
struct opscope__trace_thread {
    uint64_t *next;
    uint64_t *limit;            /* no record without a further look from here on; at most `end` */
    uint64_t *end;              /* of the block */
    uint64_t serial;            /* of the trace that all this belongs to */
    opscope_trace_block *block; /* NULL: never had one in this trace */
    uint64_t block_bytes;       /* of the next one */
    bool is_full;               /* there are no more */
    bool has_labels;            /* the last LABELS record of this thread was not of none */
    bool labels_are_stale;
};

/* trace.c: the callback, and the one for a trace with shapes. */
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

/* Cold: this thread's state for that trace, its labels written; NULL where memory ran out. */
struct opscope__trace_thread *opscope__trace_thread_open(struct opscope__trace *trace,
                                                         struct opscope__thread *thread);
/* Cold: a record with `more` words after it, all zero but for `more`; NULL where there is no room.
 */
opscope_trace_record *opscope__trace_take(struct opscope__trace *trace,
                                          struct opscope__trace_thread *state, uint32_t more);

/* Counts a record that found no room. `state` may be NULL. */
void opscope__trace_lose(struct opscope__trace *trace, const struct opscope__trace_thread *state);

/* trace_block.c. */
int opscope__trace_map(struct opscope__trace *trace, int fd, uint64_t bytes);
bool opscope__trace_block_open(struct opscope__trace *trace, struct opscope__trace_thread *state,
                               uint64_t thread_id);
/* Private memory in place of the file; see the top. */
void opscope__trace_let_go(struct opscope__trace *trace);
void opscope__trace_unmap(struct opscope__trace *trace);

static inline opscope_trace_header *opscope__trace_header(const struct opscope__trace *trace)
{
    return (opscope_trace_header *)(void *)trace->base;
}

/* trace_task.c. The trace that sees this thread now, or NULL; its state of the thread in *out. */
struct opscope__trace *opscope__trace_here(struct opscope__trace_thread **out);

/* A task that runs, as the trace sees it. */
struct opscope__trace_task {
    struct opscope__trace *trace; /* with a reference, as the task may outlive it */
    opscope_trace_record *record; /* NULL: no trace sees it */
};

/* Around the forking of a task: the time now, 0 where no trace is taken; then the task's number, of
 * which 0 is none. */
uint64_t opscope__trace_fork_begin(uint64_t *task_number);
void opscope__trace_fork_end(uint64_t begun, uint64_t task_number);
void opscope__trace_task_begin(struct opscope__trace_task *task, uint64_t task_number);
void opscope__trace_task_end(const struct opscope__trace_task *task);
void opscope__trace_allocation(uint64_t bytes);

/* trace_life.c. Whether a trace is taken: store_release there, load_acquire by whoever asks, so
 * that the clock has been measured; a look too late misses what is first. */
extern uint32_t opscope__trace_is_on;
/* The deadline has passed: ends the trace, where nobody else is just about it. */
void opscope__trace_expire(const struct opscope__trace *trace);
/* Ends a trace whose deadline has passed; cheap where there is none. With no lock held but perhaps
 * that of the settings. */
void opscope__trace_poll(void);
/* Starts one that another process wishes for, into `<segment_path>.trace`; of no duration: ends the
 * one that was. Locks as above. */
int opscope__trace_wish(const char *segment_path, uint64_t serial, uint64_t duration_ns,
                        uint64_t bytes, uint64_t flags);
void opscope__trace_release(void *trace);

void opscope__trace_lock(void);
void opscope__trace_unlock(void);
void opscope__trace_fork_child(void);
/* Without any lock. */
void opscope__trace_fork_child_done(void);

/* The thread's labels are others. */
static inline void opscope__trace_labels_changed(const struct opscope__thread *thread)
{
    struct opscope__trace_thread *state = thread->trace;
    if (state != NULL) {
        state->labels_are_stale = true;
        state->limit = state->next;
    }
}

#endif
