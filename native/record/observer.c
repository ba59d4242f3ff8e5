/* record/observer.c -- the observers' tables in their order, and the fork handlers that call
 * them. */
#include "record/observer.h"

#include <pthread.h>
#include <stddef.h>

#include "base/fence.h"

/* Constructors write it; all other code only reads it. */
static const struct opscope__observer *observers[OPSCOPE__PLACE_COUNT];

void opscope__observe(enum opscope__place place, const struct opscope__observer *observer)
{
    observers[place] = observer;
}

/* Calls one function of each table, in the order of the places or in reverse. */
#define CALL(place, function, ...)                                                                 \
    do {                                                                                           \
        const struct opscope__observer *observer = observers[place];                               \
        if (observer != NULL && observer->function != NULL) {                                      \
            observer->function(__VA_ARGS__);                                                       \
        }                                                                                          \
    } while (0)
#define CALL_ALL(function, ...)                                                                    \
    do {                                                                                           \
        for (int place = 0; place < OPSCOPE__PLACE_COUNT; place++) {                               \
            CALL(place, function, __VA_ARGS__);                                                    \
        }                                                                                          \
    } while (0)
#define CALL_ALL_REVERSED(function, ...)                                                           \
    do {                                                                                           \
        for (int place = OPSCOPE__PLACE_COUNT; place-- > 0;) {                                     \
            CALL(place, function, __VA_ARGS__);                                                    \
        }                                                                                          \
    } while (0)

void opscope__observers_thread_begins(struct opscope__thread *thread)
{
    CALL_ALL(thread_begins, thread);
}

void opscope__observers_thread_refreshed(const struct opscope__thread *thread)
{
    CALL_ALL(thread_refreshed, thread);
}

void opscope__observers_thread_ends(struct opscope__thread *thread)
{
    CALL_ALL_REVERSED(thread_ends, thread);
}

void opscope__observers_thread_freed(struct opscope__thread *thread)
{
    CALL_ALL(thread_freed, thread);
}

bool opscope__observers_range_taken(struct opscope__thread *thread, opscope_range *range)
{
    bool is_kept = false;
    CALL_ALL(range_taken, thread, range, &is_kept);
    return is_kept;
}

void opscope__observers_api_used(void)
{
    CALL_ALL(api_used, );
}

void opscope__observers_callback_failed(void)
{
    CALL_ALL(callback_failed, );
}

/* ---- the process ------------------------------------------------------------------------------- */

static pthread_once_t started = PTHREAD_ONCE_INIT;

static void fork_prepare(void)
{
    CALL_ALL(fork_prepare, );
}

static void fork_over(bool is_child)
{
    CALL_ALL_REVERSED(fork_unlock, );
    CALL_ALL_REVERSED(fork_done, is_child);
}

static void fork_parent(void)
{
    fork_over(false);
}

static void fork_child(void)
{
    CALL_ALL_REVERSED(fork_child, );
    fork_over(true);
}

static void start(void)
{
    opscope__fence_start();
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void opscope__process_start(void)
{
    pthread_once(&started, start);
}
