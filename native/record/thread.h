/* record/thread.h -- what the record layer keeps for each thread, and the registry of threads.
 *
 * The registry lock guards: the list of threads, the global callbacks, every reference count of a
 * callback, and the building and freeing of firings. It is never held while a callback runs. The
 * order in which this library takes its locks stands in record/process.c.
 */
#ifndef OPSCOPE_RECORD_THREAD_H
#define OPSCOPE_RECORD_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "opscope/debug_info.h"
#include "opscope/record.h"
#include "record/random.h"

struct opscope__callback;
struct opscope__callback_list;
struct opscope__firing;

/* Values boxed for the callbacks of one range. Owner: the thread. */
struct opscope__values {
    opscope_value *items;
    size_t count;
    size_t capacity;
};

struct opscope__thread {
    struct opscope__thread *next;              /* registry lock */
    uint64_t id;                               /* dense from 1, never reused */
    clockid_t cpu_clock;                       /* registry lock: its processor time */
    uint64_t cpu_start_ns;                     /* registry lock: of that clock, when it was made */
    bool recording;                            /* owner: the switch */
    struct opscope__firing *firing;            /* registry lock to change; NULL: nothing to fire */
    struct opscope__firing *stale;             /* registry lock: earlier ones with open ranges */
    struct opscope__callback_list *local;      /* owner; immutable list, NULL when empty */
    const opscope_debug_info *debug_info;      /* owner */
    opscope__random random;                    /* owner */
    uint64_t handle_count;                     /* owner */
    struct opscope__recorder_thread *recorder; /* owner; NULL until the recorder sees a range */
    struct opscope__trace_thread *trace;       /* owner; NULL until a trace sees a range */
    bool is_traced_alone;                      /* owner: no callback but the tracer sees it */
    struct opscope__kept_range *kept_ranges;   /* owner: free list of opscope_range_begin */
    struct opscope__values inputs;             /* of the range in inputs_of */
    const opscope_range *inputs_of;            /* the one whose starts run now */
    struct opscope__values outputs;            /* of the range in outputs_of */
    const opscope_range *outputs_of;
};

/* Sends this thread through its slow path at its next range: its own callbacks or switch changed.
 */
static inline void opscope__hot_invalidate(void)
{
    opscope__hot.version = 0;
    opscope__hot.solo = NULL;
}

void opscope__registry_lock(void);
void opscope__registry_unlock(void);
/* With the lock held: the first thread of the registry; the rest by `next`. */
struct opscope__thread *opscope__registry_first(void);

/* The processor time of all threads that ever were in the registry, from when they came on. Takes
 * the lock. To the point: the clock of the process is behind for threads that run now. */
uint64_t opscope__registry_cpu_ns(void);

/* With the lock held: firings that outlived their thread, by `next_stale`. */
struct opscope__firing *opscope__registry_orphans(void);

/* The calling thread's state, made at the first call; NULL where memory ran out. */
struct opscope__thread *opscope__thread_self(void);
/* Rebuilds what fires on this thread and resets its countdowns; NULL where memory ran out, and then
 * nothing fires. */
struct opscope__thread *opscope__thread_refresh(void);

/* For record/process.c: in the child, forgets all threads but the caller. */
void opscope__registry_fork_child(void);
/* Makes every thread take the slow path once. With the registry lock held. */
void opscope__version_bump(void);
/* Reseeds this thread's random numbers. */
void opscope__thread_reseed(struct opscope__thread *thread);

#endif
