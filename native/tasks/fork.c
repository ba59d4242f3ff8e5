/* tasks/fork.c -- fork and wait: futures, each a job of the pool.
 *
 * A thread that waits for a queued task takes the task out of the queue and runs it itself. A
 * thread therefore only ever blocks on a task that is running, and tasks that wait for tasks cannot
 * deadlock, however small the pool is.
 */
#include "opscope/fork.h"

#include <stdint.h>
#include <stdlib.h>

#include "opscope/debug_info.h"
#include "record/observer.h"
#include "tasks/pool.h"
#include "tasks/watch.h"

enum phase { QUEUED, RUNNING, DONE };

const struct opscope__task_watch *opscope__task_watch;

/* The pool's lock guards all fields except those set before the job is posted. */
struct opscope_future {
    struct opscope__job job;
    opscope_task task;
    void *arg;
    opscope_state *state;
    uint64_t generation;      /* of the process that forked it */
    uint32_t reference_count; /* one for the caller, one for the task until it is done */
    enum phase phase;
    int result;
    uint64_t number; /* of the task, for the watcher; 0: no watcher */
};

/* With the lock held; releases it while the task runs. */
static bool run(struct opscope__job *job)
{
    opscope_future *future = (opscope_future *)job;
    opscope__pool_take_out(job);
    future->phase = RUNNING;
    opscope__pool_unlock();

    const struct opscope__task_watch *watch = opscope__task_watch;
    struct opscope__task_run watched;
    if (watch != NULL) {
        watch->run_begins(&watched, future->number);
    }
    opscope_state *previous;
    bool entered = opscope_state_enter(future->state, &previous) == OPSCOPE_OK;
    int result = future->task(future->arg);
    if (entered) {
        opscope_state_leave(previous);
    }
    opscope_state_release(future->state);
    if (watch != NULL) {
        watch->run_ended(&watched);
    }

    opscope__pool_lock();
    future->result = result;
    future->phase = DONE;
    opscope__pool_finished();
    if (--future->reference_count == 0) {
        free(future);
    }
    return false;
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
    future->job.run = run;
    future->task = task;
    const struct opscope__task_watch *watch = opscope__task_watch;
    uint64_t number = 0, begun = watch != NULL ? watch->fork_begins(&number) : 0;
    future->number = number;
    future->arg = arg;
    future->reference_count = 2;
    future->phase = QUEUED;
    opscope__pool_lock();
    future->generation = opscope__pool_generation;
    opscope__pool_post(&future->job, 1, false);
    if (watch != NULL) {
        watch->fork_ended(begun, number);
    }
    *out = future;
    return OPSCOPE_OK;
}

int opscope_wait(opscope_future *future, int *result)
{
    int status = OPSCOPE_OK;
    opscope__pool_lock();
    while (future->phase != DONE && status == OPSCOPE_OK) {
        if (future->generation != opscope__pool_generation) {
            status = OPSCOPE_ERR_LOST;
        } else if (future->phase == QUEUED) {
            run(&future->job);
        } else {
            opscope__pool_await();
        }
    }
    if (status == OPSCOPE_OK) {
        *result = future->result;
    }
    opscope__pool_unlock();
    return status;
}

int opscope_future_run(opscope_future *future)
{
    int status = OPSCOPE_OK;
    opscope__pool_lock();
    if (future->phase != DONE && future->generation != opscope__pool_generation) {
        status = OPSCOPE_ERR_LOST;
    } else if (future->phase == QUEUED) {
        run(&future->job);
    } else if (future->phase == RUNNING) {
        status = OPSCOPE_ERR_BUSY;
    }
    opscope__pool_unlock();
    return status;
}

bool opscope_future_done(const opscope_future *future)
{
    opscope__pool_lock();
    bool done = future->phase == DONE;
    opscope__pool_unlock();
    return done;
}

void opscope_future_release(opscope_future *future)
{
    opscope__pool_lock();
    bool last_one = --future->reference_count == 0;
    opscope__pool_unlock();
    if (last_one) {
        free(future);
    }
}
