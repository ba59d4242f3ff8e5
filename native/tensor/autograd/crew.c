/* tensor/autograd/crew.c -- one walk on several threads: the one that called backward, and tasks of
 * the fork pool that help it.
 *
 * What runs where. The caller takes ready tasks off the heap. Where it takes a heavy node and
 * another heavy one is ready, it forks a helper, which takes tasks in the same way, may fork the
 * next helper likewise, and leaves when nothing is ready. How heavy a node is its size tells only
 * roughly, so their time is taken: where the last ones were shorter than a thread takes to wake,
 * helpers leave and none is forked. There are never more helpers than the pool has threads, less
 * the caller. A helper that the pool begins late finds nothing to do: nobody waits for helpers,
 * only for tasks that are running. So a walk ends on its caller alone where the pool is busy, or is
 * the pool's only thread.
 *
 * What may block. A running task may wait for pieces of its kernel (which run on the spot where no
 * thread has begun them, and wait for nothing), for a sum lock (whose holder adds, as above), for
 * Python's GIL (which nobody here holds while it waits for anything else). None of them waits for
 * the crew's lock while it holds something another needs. The caller alone waits for `changed`, and
 * only while some task runs.
 *
 * Same sums. Additions of floats depend on their order. Every edge has its turn, found before the
 * walk starts: its place in the order in which a serial walk would have delivered to the same task.
 * A gradient that comes out of turn is laid by until those before it are there. One thread at a
 * time adds to a task (is_adding), without the lock; the others lay theirs by and go on.
 *
 * Who sees what. Everything in the graph is read and written with the crew's lock held, but for: a
 * task that was taken off the heap (the taker's alone), `arrived` while is_adding (the adder's
 * alone), and what never changes during the walk (nodes, edges, turns, the map).
 *
 * Helpers run within the caller's captured state: labels, local callbacks, grad mode.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "opscope/fork.h"
#include "tensor/autograd/engine.h"
#include "tensor/autograd/sum.h"
#include "tensor/error.h"

/* The guess is high: it takes some short nodes to learn otherwise. */
enum { WAKING_NS = 30000, FIRST_GUESS_NS = 100000 };

struct opscope__crew {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a task became ready or ended */
    /* All under the lock. */
    uint32_t reference_count;   /* the caller, and each helper that was forked */
    struct opscope__walk *walk; /* NULL: the caller has gone */
    int helper_limit;
    int helper_count;  /* forked, and not yet left */
    int running;       /* tasks */
    uint64_t heavy_ns; /* what heavy nodes took of late */
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

bool opscope__crew_is_wanted(const struct opscope__graph *graph)
{
    return graph->heavy_count >= 2 && opscope_pool_threads() > 1;
}

int opscope__crew_create(struct opscope__walk *walk)
{
    struct opscope__crew *crew = calloc(1, sizeof *crew);
    if (crew == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
    }
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->changed, NULL);
    crew->reference_count = 1;
    crew->walk = walk;
    crew->helper_limit = opscope_pool_threads() - 1;
    crew->heavy_ns = FIRST_GUESS_NS;
    walk->crew = crew;
    return OPSCOPE_OK;
}

void opscope__crew_release(struct opscope__crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    bool is_last = --crew->reference_count == 0;
    pthread_mutex_unlock(&crew->lock);
    if (is_last) {
        pthread_cond_destroy(&crew->changed);
        pthread_mutex_destroy(&crew->lock);
        free(crew);
    }
}

/* ---- deliveries ----------------------------------------------------------------------------- */

/* With the lock held; lets go of it during additions. */
static int add_those_whose_turn_it_is(struct opscope__crew *crew, struct opscope__task *task)
{
    int status = OPSCOPE_OK;
    task->is_adding = true;
    while (status == OPSCOPE_OK && task->next < task->expected &&
           task->deliveries[task->next].is_here) {
        struct opscope__delivery *delivery = &task->deliveries[task->next++];
        opscope_tensor *gradient = delivery->gradient;
        delivery->gradient = NULL;
        if (gradient != NULL) {
            pthread_mutex_unlock(&crew->lock);
            status = opscope__sum_add(&task->arrived[delivery->output], gradient);
            pthread_mutex_lock(&crew->lock);
        }
    }
    task->is_adding = false;
    return status;
}

int opscope__crew_deliver(struct opscope__walk *walk, struct opscope__task *task, uint32_t turn,
                          uint32_t output, opscope_tensor *gradient)
{
    struct opscope__crew *crew = walk->crew;
    int status = OPSCOPE_OK;
    pthread_mutex_lock(&crew->lock);
    task->deliveries[turn] = (struct opscope__delivery){gradient, output, true};
    if (!task->is_adding) {
        status = add_those_whose_turn_it_is(crew, task);
        if (status == OPSCOPE_OK && task->next == task->expected) {
            opscope__graph_push(&walk->graph, task);
            pthread_cond_signal(&crew->changed);
        }
    }
    pthread_mutex_unlock(&crew->lock);
    return status;
}

/* ---- walking ---------------------------------------------------------------------------------- */

static void fork_helper(struct opscope__crew *crew);

/* Whether to fork a helper, with a task just taken. */
static bool needs_helper(const struct opscope__crew *crew, const struct opscope__task *taken)
{
    const struct opscope__graph *graph = &crew->walk->graph;
    return opscope__task_is_heavy(taken) && crew->heavy_ns >= WAKING_NS &&
           crew->helper_count < crew->helper_limit && graph->ready_count != 0 &&
           opscope__task_is_heavy(graph->ready[0]);
}

/* Without the lock, which is not held while a failure is dropped: that may need the GIL. */
static void note_failure(struct opscope__crew *crew, const struct opscope__task *task, int status)
{
    struct opscope__failure failure;
    opscope__failure_take(&failure);
    pthread_mutex_lock(&crew->lock);
    if (crew->status == OPSCOPE_OK || task->rank < crew->failed_rank) {
        struct opscope__failure other = crew->failure;
        crew->failure = failure;
        crew->status = status;
        crew->failed_rank = task->rank;
        failure = other;
    }
    pthread_mutex_unlock(&crew->lock);
    opscope__failure_drop(&failure);
}

/* With the lock held; lets go of it while a task runs. Returns when nothing is ready, or nothing a
 * helper is needed for. */
static void work(struct opscope__crew *crew, bool helps)
{
    struct opscope__walk *walk = crew->walk;
    struct opscope__task *task;
    while (crew->status == OPSCOPE_OK && !(helps && crew->heavy_ns < WAKING_NS) &&
           (task = opscope__graph_pop(&walk->graph)) != NULL) {
        crew->running++;
        bool with_helper = needs_helper(crew, task);
        if (with_helper) {
            crew->helper_count++;
            crew->reference_count++;
        }
        pthread_mutex_unlock(&crew->lock);
        if (with_helper) {
            fork_helper(crew);
        }
        uint64_t start_ns = now_ns();
        int status = opscope__run_task(walk, task);
        uint64_t took_ns = now_ns() - start_ns;
        if (status != OPSCOPE_OK) {
            note_failure(crew, task, status);
        }
        pthread_mutex_lock(&crew->lock);
        crew->running--;
        if (opscope__task_is_heavy(task)) {
            crew->heavy_ns = (3 * crew->heavy_ns + took_ns) / 4;
        }
        pthread_cond_signal(&crew->changed);
    }
}

static int help(void *arg)
{
    struct opscope__crew *crew = arg;
    pthread_mutex_lock(&crew->lock);
    if (crew->walk != NULL) {
        bool before = opscope_grad_mode_set(crew->walk->create_graph);
        work(crew, true);
        opscope_grad_mode_set(before);
    }
    crew->helper_count--;
    pthread_mutex_unlock(&crew->lock);
    opscope__crew_release(crew);
    return OPSCOPE_OK;
}

static void fork_helper(struct opscope__crew *crew)
{
    opscope_future *future;
    if (opscope_fork(help, crew, &future) == OPSCOPE_OK) {
        opscope_future_release(future);
        return;
    }
    pthread_mutex_lock(&crew->lock);
    crew->helper_count--;
    pthread_mutex_unlock(&crew->lock);
    opscope__crew_release(crew);
}

int opscope__crew_walk(struct opscope__walk *walk)
{
    struct opscope__crew *crew = walk->crew;
    pthread_mutex_lock(&crew->lock);
    work(crew, false);
    while (crew->running != 0) {
        pthread_cond_wait(&crew->changed, &crew->lock);
        work(crew, false);
    }
    crew->walk = NULL;
    int status = crew->status;
    pthread_mutex_unlock(&crew->lock);
    if (status != OPSCOPE_OK) {
        opscope__failure_set(&crew->failure);
    }
    return status;
}
