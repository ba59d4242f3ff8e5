/* record/observer.h -- events of this layer, for the parts that keep per-thread state or take a
 * lock: parts of this layer and the layers above it. This layer therefore does not name the layers
 * above.
 *
 * A part has one table of functions. A constructor registers it when the library is loaded, before
 * any other function of the library can run. The tables therefore need no lock, and no part is ever
 * present without its table.
 *
 * Places are in the order in which the library takes its locks. Before a fork, the library takes
 * all locks in that order, so the child finds every structure consistent. The child then drops the
 * state of threads that do not exist there.
 */
#ifndef OPSCOPE_RECORD_OBSERVER_H
#define OPSCOPE_RECORD_OBSERVER_H

#include <stdbool.h>

#include "opscope/record.h"

struct opscope__thread;

enum opscope__place {
    OPSCOPE__PLACE_CALLBACKS,  /* no lock of its own; a thread that ends releases its callbacks last
                                */
    OPSCOPE__PLACE_DEBUG_INFO, /* no lock of its own; a new thread gets its debug info first */
    OPSCOPE__PLACE_VALUES,
    OPSCOPE__PLACE_RANGES,
    OPSCOPE__PLACE_RECORDER,  /* locks: settings, segment, window */
    OPSCOPE__PLACE_TASKS,     /* pool */
    OPSCOPE__PLACE_TRACE,     /* trace */
    OPSCOPE__PLACE_BRIDGES,   /* locks of the demand listeners (record/demand.h) */
    OPSCOPE__PLACE_REGISTRY,  /* registry of threads */
    OPSCOPE__PLACE_OPERATORS, /* operators */
    OPSCOPE__PLACE_USAGE,     /* usage */
    OPSCOPE__PLACE_COUNT
};

/* Each function may be NULL. The functions of a thread run on that thread. */
struct opscope__observer {
    /* In the order of the places, without locks: the thread is in the registry. */
    void (*thread_begins)(struct opscope__thread *thread);
    /* In the order of the places, without locks: the thread's snapshot was rebuilt
     * (record/callback.h). */
    void (*thread_refreshed)(const struct opscope__thread *thread);
    /* In reverse order, without locks: the thread is still in the registry. */
    void (*thread_ends)(struct opscope__thread *thread);
    /* The thread is in no list any more; its memory is about to be freed. */
    void (*thread_freed)(struct opscope__thread *thread);

    /* In the order of the places, without locks: another thread has ended a range of this one. Sets
     * *is_kept if the part cannot forget the range yet; it is then asked again. */
    void (*range_taken)(struct opscope__thread *thread, opscope_range *range, bool *is_kept);

    /* Without locks: an API was used for the first time; a callback reported a failure. */
    void (*api_used)(void);
    void (*callback_failed)(void);

    /* Before a fork, in the order of the places: takes the part's locks. */
    void (*fork_prepare)(void);
    /* In the child, in reverse order, with all locks held. */
    void (*fork_child)(void);
    /* In the parent and the child, in reverse order: releases the locks. */
    void (*fork_unlock)(void);
    /* After that, in reverse order, without locks. */
    void (*fork_done)(bool is_child);
};

/* For constructors; the table lives as long as the process. */
void opscope__observe(enum opscope__place place, const struct opscope__observer *observer);

/* Prepares the library in this process, including its fork handlers. Idempotent and cheap; every
 * public function that takes a lock calls it first. */
void opscope__process_start(void);

/* For the record layer. */
void opscope__observers_thread_begins(struct opscope__thread *thread);
void opscope__observers_thread_refreshed(const struct opscope__thread *thread);
void opscope__observers_thread_ends(struct opscope__thread *thread);
void opscope__observers_thread_freed(struct opscope__thread *thread);
bool opscope__observers_range_taken(struct opscope__thread *thread, opscope_range *range);
void opscope__observers_api_used(void);
void opscope__observers_callback_failed(void);

#endif
