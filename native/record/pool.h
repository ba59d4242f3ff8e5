/* record/pool.h -- the pool of threads and its queue, for fork.c and split.c; its life across a
 * fork of the process, for process.c.
 *
 * One lock guards the queue, the threads' counts and everything fork.c and split.c keep of a job.
 * It is never held while a task or a piece runs.
 */
#ifndef OPSCOPE_RECORD_POOL_H
#define OPSCOPE_RECORD_POOL_H

#include <stdbool.h>
#include <stdint.h>

/* Something queued. The first member of what fork.c and split.c queue. */
struct opscope__job {
    struct opscope__job *previous, *next; /* in the queue */
    /* Called by a thread of the pool with the lock held, and returns with it; lets go of it in
     * between. Takes the job out of the queue when no other thread shall join. True: more is likely
     * to come at once. */
    bool (*run)(struct opscope__job *job);
};

void opscope__pool_lock(void);
void opscope__pool_unlock(void);
void opscope__pool_fork_child(void);

/* The rest is called with the lock held. */

/* Goes up in a forked child, where jobs of the parent have no thread. */
extern uint64_t opscope__pool_generation;
/* Queues a job that up to `threads` threads can join, before all others where `is_urgent`, and sees
 * to it that they come: those that are idle or new ones. Lets go of the lock. */
void opscope__pool_post(struct opscope__job *job, int threads, bool is_urgent);
void opscope__pool_take_out(struct opscope__job *job);
/* How many threads of the pool may work beside this thread without there being more at work than
 * the pool has threads. */
int opscope__pool_places(void);
/* Of queued splits: threads that are expected. They count as at work. */
extern int opscope__pool_expected;
/* Counts a thread that is not of the pool as at work; true where it was not. Then it also ends
 * that, which needs no lock. */
bool opscope__pool_enter(void);
void opscope__pool_leave(void);
/* Waits for a job to be finished, any. */
void opscope__pool_await(void);
/* Called after a change that opscope__pool_await may wait for. */
void opscope__pool_finished(void);
/* One step of waiting for another thread without sleeping; false once that has gone on for as long
 * as it may. *started is 0 at first. Called without the lock. */
bool opscope__pool_spin(uint64_t *started);

#endif
