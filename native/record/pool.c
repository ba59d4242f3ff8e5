/* record/pool.c -- fork and wait on a pool of threads.
 *
 * One lock and one condition guard everything here. A wait on a task that is still queued takes it
 * out of the queue and runs it on the spot; so a thread that waits only ever waits for a task that
 * is running, and tasks that wait for tasks cannot block each other, however small the pool is.
 */
#define _GNU_SOURCE
#include "record/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include "opscope/debug_info.h"
#include "opscope/fork.h"
#include "record/process.h"

enum { THREAD_LIMIT = 256 };

enum phase { QUEUED, RUNNING, DONE };

struct opscope_future {
    struct opscope_future *previous, *next; /* in the queue, while QUEUED */
    opscope_task task;
    void *arg;
    opscope_state *state;
    uint64_t generation;      /* of the process that forked it */
    uint32_t reference_count; /* one for the caller, one for the task until it is done */
    enum phase phase;
    int result;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* a task was queued or is done */
static opscope_future *first, *last;
static int wanted_threads; /* 0: as many as processors */
static int thread_count;
static int idle_count;
static int queued_count;
static uint64_t generation = 1; /* goes up in a forked child */

void opscope__pool_lock(void)
{
    pthread_mutex_lock(&lock);
}

void opscope__pool_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void opscope__pool_fork_child(void)
{
    /* The parent's threads and tasks are not here; its futures stay as they were. */
    first = last = NULL;
    thread_count = idle_count = queued_count = 0;
    generation++;
    pthread_cond_init(&changed, NULL);
}

static void append(opscope_future *future)
{
    future->previous = last;
    future->next = NULL;
    *(last != NULL ? &last->next : &first) = future;
    last = future;
    queued_count++;
}

static void take_out(opscope_future *future)
{
    *(future->previous != NULL ? &future->previous->next : &first) = future->next;
    *(future->next != NULL ? &future->next->previous : &last) = future->previous;
    queued_count--;
}

/* With the lock held; lets go of it while the task runs. */
static void run(opscope_future *future)
{
    take_out(future);
    future->phase = RUNNING;
    pthread_mutex_unlock(&lock);

    opscope_state *previous;
    bool entered = opscope_state_enter(future->state, &previous) == OPSCOPE_OK;
    int result = future->task(future->arg);
    if (entered) {
        opscope_state_leave(previous);
    }
    opscope_state_release(future->state);

    pthread_mutex_lock(&lock);
    future->result = result;
    future->phase = DONE;
    pthread_cond_broadcast(&changed);
    if (--future->reference_count == 0) {
        free(future);
    }
}

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (first == NULL) {
            idle_count++;
            pthread_cond_wait(&changed, &lock);
            idle_count--;
        }
        run(first);
    }
    return NULL;
}

static int processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* With the lock held: one more thread, where one is missing. Failing is no error, as a wait runs
 * what nobody took. */
static void add_thread(void)
{
    int limit = wanted_threads != 0 ? wanted_threads : processors();
    if (idle_count >= queued_count || thread_count >= limit) {
        return;
    }
    /* Signals are the program's: its own threads get them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, work, NULL) == 0) {
        thread_count++;
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int opscope_fork(opscope_task task, void *arg, opscope_future **out)
{
    opscope__process_start();
    opscope_future *future = malloc(sizeof *future);
    if (future == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    int status = opscope_state_capture(&future->state);
    if (status != OPSCOPE_OK) {
        free(future);
        return status;
    }
    future->task = task;
    future->arg = arg;
    future->reference_count = 2;
    future->phase = QUEUED;
    pthread_mutex_lock(&lock);
    future->generation = generation;
    append(future);
    add_thread();
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    *out = future;
    return OPSCOPE_OK;
}

int opscope_wait(opscope_future *future, int *result)
{
    int status = OPSCOPE_OK;
    pthread_mutex_lock(&lock);
    while (future->phase != DONE && status == OPSCOPE_OK) {
        if (future->generation != generation) {
            status = OPSCOPE_ERR_LOST;
        } else if (future->phase == QUEUED) {
            run(future);
        } else {
            pthread_cond_wait(&changed, &lock);
        }
    }
    if (status == OPSCOPE_OK) {
        *result = future->result;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int opscope_future_run(opscope_future *future)
{
    int status = OPSCOPE_OK;
    pthread_mutex_lock(&lock);
    if (future->phase != DONE && future->generation != generation) {
        status = OPSCOPE_ERR_LOST;
    } else if (future->phase == QUEUED) {
        run(future);
    } else if (future->phase == RUNNING) {
        status = OPSCOPE_ERR_BUSY;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

bool opscope_future_done(const opscope_future *future)
{
    pthread_mutex_lock(&lock);
    bool done = future->phase == DONE;
    pthread_mutex_unlock(&lock);
    return done;
}

void opscope_future_release(opscope_future *future)
{
    pthread_mutex_lock(&lock);
    bool last_one = --future->reference_count == 0;
    pthread_mutex_unlock(&lock);
    if (last_one) {
        free(future);
    }
}

int opscope_pool_set_threads(int count)
{
    if (count < 1 || count > THREAD_LIMIT) {
        return OPSCOPE_ERR_INVALID;
    }
    pthread_mutex_lock(&lock);
    wanted_threads = count;
    pthread_mutex_unlock(&lock);
    return OPSCOPE_OK;
}

int opscope_pool_threads(void)
{
    pthread_mutex_lock(&lock);
    int count = wanted_threads != 0 ? wanted_threads : processors();
    pthread_mutex_unlock(&lock);
    return count;
}
