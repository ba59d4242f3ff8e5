/* tasks/pool.h -- the pool of threads and its queue, for fork.c and split.c, and its handlers for a
 * fork of the process.
 *
 * One lock guards the queue, the threads' counts and all state that fork.c and split.c keep of a
 * job. It is never held while a task or a piece runs.
 */
#ifndef OPSCOPE_TASKS_POOL_H
#define OPSCOPE_TASKS_POOL_H

#include <stdbool.h>
#include <stdint.h>

/* A queued job: the first member of the structures that fork.c and split.c queue. */
struct opscope__job {
    struct opscope__job *previous, *next; /* in the queue */
    /* A thread of the pool calls it with the lock held; it releases the lock while it works, and
     * returns with the lock held. It takes the job out of the queue when no other thread should
     * join. Returns true if more work is likely to come soon. */
    bool (*run)(struct opscope__job *job);
};

void opscope__pool_lock(void);
void opscope__pool_unlock(void);
void opscope__pool_fork_child(void);

/* Call everything below with the lock held. */

/* Increases in a forked child, where jobs of the parent have no thread. */
extern uint64_t opscope__pool_generation;
/* Queues a job that up to `threads` threads can join, before all others if `is_urgent`, and wakes
 * idle threads or starts new ones for it. Releases the lock. */
void opscope__pool_post(struct opscope__job *job, int threads, bool is_urgent);
void opscope__pool_take_out(struct opscope__job *job);
/* How many threads of the pool may work beside this thread before more threads work than the pool
 * has. */
int opscope__pool_places(void);
/* Threads that queued splits still expect. They count as working. */
extern int opscope__pool_expected;
/* enter counts a thread outside the pool as working; true if it was not counted before. Only then
 * does the thread call leave, which needs no lock. */
bool opscope__pool_enter(void);
void opscope__pool_leave(void);
/* Waits until any job finishes. */
void opscope__pool_await(void);
/* Call it after a change that opscope__pool_await may wait for. */
void opscope__pool_finished(void);
/* One step of waiting for another thread without sleeping; false once the time limit has passed.
 * *started is 0 at first. Call it without the lock. */
bool opscope__pool_spin(uint64_t *started);

#endif
