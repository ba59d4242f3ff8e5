/* record/thread.h -- the record layer's state of each thread, and the registry of threads.
 *
 * The registry lock guards the list of threads, the global callbacks, every reference count of a
 * callback, and the building and freeing of snapshots. It is never held while a callback runs.
 * record/observer.h has the order of this library's locks.
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
struct opscope__snapshot;

/* Values boxed for the callbacks of one range. Owner: the thread. */
struct opscope__values {
    opscope_value *items;
    size_t count;
    size_t capacity;
};

/* Of a new thread. In a window all of them are odd. */
enum opscope__newness { OPSCOPE__HAS_MET_WINDOW = 1, OPSCOPE__HAS_MET_NONE = 2 };

struct opscope__thread {
    struct opscope__thread *next; /* registry lock */
    uint64_t id;                  /* counts up from 1, never reused */
    uint64_t is_new;     /* registry lock to write, relaxed: it has met one window at most, and came
                            after the first one; opscope__newness */
    clockid_t cpu_clock; /* registry lock: its CPU time */
    uint64_t cpu_start_ns;   /* registry lock: value of that clock when the state was made */
    uint64_t counted;        /* owner, relaxed: ranges that a bridge has counted, recorded or not */
    uint64_t counted_before; /* registry lock: of all its ranges, when they were last summed */
    const struct opscope__hot *hot; /* registry lock: the thread's own */
    uint64_t armed;  /* registry lock: the value from which the thread counts down operators' ranges
                        now; 0: a callback wants them, and they are not counted */
    uint64_t passed; /* registry lock: those that it counted down from earlier values */
    bool recording;  /* owner: the recording switch */
    struct opscope__snapshot *snapshot;   /* registry lock to change; NULL: nothing fires */
    struct opscope__snapshot *stale;      /* registry lock: earlier snapshots with open ranges */
    struct opscope__callback_list *local; /* owner; immutable list, NULL when empty */
    const opscope_debug_info *debug_info; /* owner */
    opscope__random random;               /* owner */
    uint64_t handle_count;                /* owner */
    struct opscope__recorder_thread *recorder; /* owner; NULL until the recorder sees a range */
    struct opscope__trace_thread *trace;       /* owner; NULL until a trace sees a range */
    bool is_private; /* owner: only leaves that ask for it see this thread */
    struct opscope__heap_range *heap_ranges;  /* owner: free list of opscope_range_begin */
    struct opscope__heap_range *taken_ranges; /* registry lock; relaxed by the owner: those that
                                                 other threads have ended */
    struct opscope__values inputs;            /* of the range in inputs_of */
    const opscope_range *inputs_of;           /* the range whose starts run now */
    struct opscope__values outputs;           /* of the range in outputs_of */
    const opscope_range *outputs_of;
};

/* Sends this thread through its slow path at its next range, because its own callbacks or switch
 * changed. */
static inline void opscope__hot_invalidate(void)
{
    opscope__hot.version = 0;
    opscope__hot.solo = NULL;
}

void opscope__registry_lock(void);
void opscope__registry_unlock(void);
/* With the lock held: the first thread of the registry; `next` links the others. */
struct opscope__thread *opscope__registry_first(void);

/* The process's CPU time since it started, in ns, in two parts: known_ns of the threads in the
 * registry, each since it came, and rest_ns of all other threads. A thread that came after the
 * first window belongs to the rest until it meets its second one, so everything that runs in a
 * window, and everything before it, stays in one part. The window driver's time is in neither part,
 * because its work is not the program's.
 *
 * The time of the threads in the registry is exact. The rest comes from the process clock, which
 * may lag by up to a timer tick for each thread that runs at that moment. This is an error of a
 * single reading; it does not accumulate over the differences.
 */
struct opscope__cpu_times {
    uint64_t known_ns;
    uint64_t rest_ns;
    bool has_new; /* a new thread has met the last window; it may have ended */
};

/* Takes the lock. While a driver runs, only the driver calls it. */
void opscope__registry_read_cpu(struct opscope__cpu_times *out);
/* Marks the calling thread as a window driver, from its first moment to its last. */
void opscope__registry_driver_begins(void);
void opscope__registry_driver_ends(void);
/* CPU time of all window drivers so far; a driver that is still running is included only if it is
 * the caller. Takes the lock. */
uint64_t opscope__registry_drivers_ns(void);
/* Between these two calls a window is open. Both take the lock. */
void opscope__registry_window_opens(void);
void opscope__registry_window_closes(void);

/* The operators' ranges so far, of the threads in the registry and those that ended, while no
 * callback wants them: those that bridges have counted, and those that the threads counted down.
 * Clears *out_is_exact if a callback wants them now. *out_busy: how many of the threads in the
 * registry have run some since the last call. Takes the lock. */
uint64_t opscope__registry_counted(bool *out_is_exact, unsigned *out_busy);
/* Of these, those that bridges have counted, whatever callbacks want. */
uint64_t opscope__registry_counted_by_bridges(void);
/* With the lock held, by the thread, before its countdowns change: keeps what it counted down. */
void opscope__thread_keep_passed(struct opscope__thread *thread);

/* The calling thread's state; the first call makes it. NULL if memory ran out. */
struct opscope__thread *opscope__thread_self(void);
/* Sends every thread through the slow path once. Call it with the registry lock held. */
void opscope__version_bump(void);
/* Reseeds this thread's random numbers. */
void opscope__thread_reseed(struct opscope__thread *thread);

#endif
