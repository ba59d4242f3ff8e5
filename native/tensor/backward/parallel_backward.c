/* tensor/backward/parallel_backward.c -- one walk on several threads: the one that called backward,
 * and tasks of the fork pool that help it.
 *
 * What runs where. The caller takes ready tasks off the heap. Where it takes a heavy node and
 * another heavy one is ready, it forks a helper, which takes tasks in the same way, may fork the
 * next helper likewise, and leaves when nothing is ready. How heavy a node is its size tells only
 * roughly, so their time is taken: where the last ones were shorter than a thread takes to wake,
 * helpers leave and none is forked. There are never more helpers than the pool has threads, less
 * the caller. A helper that the pool begins late finds nothing to do: the walk waits for running
 * tasks, never for helpers. So the caller alone can finish a walk if the pool is busy, or if the
 * caller is the pool's only thread.
 *
 * What may block. A running task may wait for pieces of its kernel (which run on the spot where no
 * thread has begun them, and wait for nothing), for a sum lock (whose holder adds, as above), for
 * Python's GIL (which no thread here holds while it waits for anything else). None of them waits
 * for the lock of the parallel walk while it holds something another needs. The caller alone waits
 * for `changed`, and only while some task runs.
 *
 * Same sums. Additions of floats depend on their order. Every edge has its turn, found before the
 * walk starts: its place in the order in which a serial walk would have delivered to the same task.
 * deliver.c keeps to it.
 *
 * Who sees what. Everything in the graph is read and written with the lock of the parallel walk
 * held, but for: a task that was taken off the heap (the taker's alone), `arrived` while is_adding
 * (the adder's alone), and what never changes during the walk (nodes, edges, turns, the map).
 *
 * Helpers run within the caller's captured state: labels, local callbacks, grad mode.
 */
#include "tensor/backward/parallel_backward.h"

#include <stdlib.h>
#include <time.h>

#include "opscope/fork.h"
#include "tensor/backward/task.h"
#include "tensor/base/error.h"

/* The guess is high: it takes some short nodes to learn otherwise. */
enum { WAKING_NS = 30000, FIRST_GUESS_NS = 100000 };

struct opscope__parallel_backward {
    struct opscope__walk_lock lock;
    /* All under the lock. */
    uint32_t reference_count;   /* the caller, and each helper that was forked */
    struct opscope__walk *walk; /* NULL: the caller has gone */
    int helper_limit;
    int helper_count;  /* forked, and not yet left */
    int running;       /* tasks */
    uint64_t heavy_ns; /* recent time of heavy nodes */
    int status;        /* of the failed task that a serial walk would have come to first */
    size_t failed_rank;
    struct opscope__failure failure;
};

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

bool opscope__parallel_backward_is_wanted(const struct opscope__graph *graph)
{
    return graph->heavy_count >= 2 && opscope_pool_threads() > 1;
}

int opscope__parallel_backward_create(struct opscope__walk *walk)
{
    struct opscope__parallel_backward *parallel = calloc(1, sizeof *parallel);
    if (parallel == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
    }
    pthread_mutex_init(&parallel->lock.mutex, NULL);
    pthread_cond_init(&parallel->lock.changed, NULL);
    parallel->reference_count = 1;
    parallel->walk = walk;
    parallel->helper_limit = opscope_pool_threads() - 1;
    parallel->heavy_ns = FIRST_GUESS_NS;
    walk->parallel = parallel;
    walk->lock = &parallel->lock;
    return OPSCOPE_OK;
}

void opscope__parallel_backward_release(struct opscope__parallel_backward *parallel)
{
    pthread_mutex_lock(&parallel->lock.mutex);
    bool is_last = --parallel->reference_count == 0;
    pthread_mutex_unlock(&parallel->lock.mutex);
    if (is_last) {
        pthread_cond_destroy(&parallel->lock.changed);
        pthread_mutex_destroy(&parallel->lock.mutex);
        free(parallel);
    }
}

/* ---- walking ---------------------------------------------------------------------------------- */

static void fork_helper(struct opscope__parallel_backward *parallel);

/* Whether to fork a helper, with a task just taken. */
static bool needs_helper(const struct opscope__parallel_backward *parallel,
                         const struct opscope__task *taken)
{
    const struct opscope__graph *graph = &parallel->walk->graph;
    return opscope__task_is_heavy(taken) && parallel->heavy_ns >= WAKING_NS &&
           parallel->helper_count < parallel->helper_limit && graph->ready_count != 0 &&
           opscope__task_is_heavy(graph->ready[0]);
}

/* Without the lock, which is not held while a failure is dropped: that may need the GIL. */
static void note_failure(struct opscope__parallel_backward *parallel,
                         const struct opscope__task *task, int status)
{
    struct opscope__failure failure;
    opscope__failure_take(&failure);
    pthread_mutex_lock(&parallel->lock.mutex);
    if (parallel->status == OPSCOPE_OK || task->rank < parallel->failed_rank) {
        struct opscope__failure other = parallel->failure;
        parallel->failure = failure;
        parallel->status = status;
        parallel->failed_rank = task->rank;
        failure = other;
    }
    pthread_mutex_unlock(&parallel->lock.mutex);
    opscope__failure_drop(&failure);
}

/* With the lock held; lets go of it while a task runs. Returns when nothing is ready, or nothing a
 * helper is needed for. */
static void work(struct opscope__parallel_backward *parallel, bool helps)
{
    struct opscope__walk *walk = parallel->walk;
    struct opscope__task *task;
    while (parallel->status == OPSCOPE_OK && !(helps && parallel->heavy_ns < WAKING_NS) &&
           (task = opscope__graph_pop(&walk->graph)) != NULL) {
        parallel->running++;
        bool with_helper = needs_helper(parallel, task);
        if (with_helper) {
            parallel->helper_count++;
            parallel->reference_count++;
        }
        pthread_mutex_unlock(&parallel->lock.mutex);
        if (with_helper) {
            fork_helper(parallel);
        }
        uint64_t start_ns = now_ns();
        int status = opscope__run_task(walk, task);
        uint64_t took_ns = now_ns() - start_ns;
        if (status != OPSCOPE_OK) {
            note_failure(parallel, task, status);
        }
        pthread_mutex_lock(&parallel->lock.mutex);
        parallel->running--;
        if (opscope__task_is_heavy(task)) {
            parallel->heavy_ns = (3 * parallel->heavy_ns + took_ns) / 4;
        }
        pthread_cond_signal(&parallel->lock.changed);
    }
}

static int help(void *arg)
{
    struct opscope__parallel_backward *parallel = arg;
    pthread_mutex_lock(&parallel->lock.mutex);
    if (parallel->walk != NULL) {
        bool before = opscope_grad_mode_set(parallel->walk->create_graph);
        work(parallel, true);
        opscope_grad_mode_set(before);
    }
    parallel->helper_count--;
    pthread_mutex_unlock(&parallel->lock.mutex);
    opscope__parallel_backward_release(parallel);
    return OPSCOPE_OK;
}

static void fork_helper(struct opscope__parallel_backward *parallel)
{
    opscope_future *future;
    if (opscope_fork(help, parallel, &future) == OPSCOPE_OK) {
        opscope_future_release(future);
        return;
    }
    pthread_mutex_lock(&parallel->lock.mutex);
    parallel->helper_count--;
    pthread_mutex_unlock(&parallel->lock.mutex);
    opscope__parallel_backward_release(parallel);
}

int opscope__parallel_backward_run(struct opscope__walk *walk)
{
    struct opscope__parallel_backward *parallel = walk->parallel;
    pthread_mutex_lock(&parallel->lock.mutex);
    work(parallel, false);
    while (parallel->running != 0) {
        pthread_cond_wait(&parallel->lock.changed, &parallel->lock.mutex);
        work(parallel, false);
    }
    parallel->walk = NULL;
    int status = parallel->status;
    pthread_mutex_unlock(&parallel->lock.mutex);
    if (status != OPSCOPE_OK) {
        opscope__failure_set(&parallel->failure);
    }
    return status;
}
