/* torch.c -- the life of the PyTorch bridge: attach, detach, and between them added to PyTorch's
 * callbacks while somebody wants ranges, removed while nobody does.
 *
 * PyTorch's registry of global callbacks is a vector under a lock and a version counter. Adding and
 * removing change both under the lock; a thread compares the version when it opens a range and,
 * where it changed, copies the vector under the lock and rebuilds its own cache. So both may be
 * called at any time from any thread, with operators running; a range that is open keeps the
 * callbacks it started with. One window costs each thread two such rebuilds, and nothing else once
 * it is closed.
 *
 * Lock: `lock` guards what stands here; PyTorch's is taken after it, and the registry's of this
 * library. They are taken for the time of a fork, so that the child finds none of them locked by a
 * thread that it does not have. At exit PyTorch's registry is destroyed; a function of atexit,
 * younger than that and so called earlier, ends the bridge for good.
 */
#include "opscope/torch.h"

#include <stdlib.h>
#include <unistd.h>

#include "bridges/torch_cost.h"
#include "bridges/torch_labels.h"
#include "bridges/torch_range.h"
#include "bridges/torch_stack.h"
#include "bridges/torch_trial.h"
#include "record/demand.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_prepared; /* found, and told of demand and forks */
static bool is_trying;   /* between the two halves of a trial */
static bool is_attached;
static bool is_closed;  /* the process exits: PyTorch is left alone */
static uint64_t handle; /* PyTorch's; 0: not added */
static struct opscope__torch_callback added;
static uint64_t added_count;
static pid_t forking_pid; /* while a fork is under way */

/* ---- added while wanted ----------------------------------------------------------------------- */

static bool is_same(const struct opscope__torch_callback *a,
                    const struct opscope__torch_callback *b)
{
    return a->sampling_prob == b->sampling_prob &&
           memcmp(a->scopes, b->scopes, sizeof a->scopes) == 0 &&
           a->needs_inputs == b->needs_inputs && a->needs_outputs == b->needs_outputs;
}

/* With the lock held. */
static void remove_now(void)
{
    if (handle != 0) {
        opscope__torch.remove_callback(handle);
        handle = 0;
    }
}

/* What PyTorch is to be asked for. A single callback with a probability is drawn for by PyTorch,
 * where a miss costs least. The recorder then looks at operators only: for every scope that is
 * sampled PyTorch draws again at each node of a backward. */
static struct opscope__torch_callback callback_for(const struct opscope__demand *demand)
{
    const bool is_drawn = demand->prob < 1.0;
    const uint32_t scopes =
        is_drawn && demand->is_recorder ? demand->scopes & 1u << OPSCOPE_FUNCTION : demand->scopes;
    struct opscope__torch_callback callback = {
        .start = is_drawn ? opscope__torch_range_start_drawn : opscope__torch_range_start,
        .end = opscope__torch_range_end,
        .sampling_prob = demand->prob,
        .needs_inputs = demand->needs_inputs,
        .needs_outputs = demand->needs_outputs};
    for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
        callback.scopes[scope] = (scopes >> scope & 1u) != 0;
    }
    return callback;
}

/* With the lock held. */
static void follow_demand(void)
{
    struct opscope__demand demand = {0};
    if (is_attached && !is_closed) {
        opscope__demand_read(&demand);
    }
    if (demand.scopes == 0) {
        remove_now();
        return;
    }
    const struct opscope__torch_callback wanted = callback_for(&demand);
    if (handle != 0 && is_same(&wanted, &added)) {
        return;
    }
    remove_now();
    handle = opscope__torch.add_global_callback(wanted);
    added = wanted;
    added_count++;
}

static void demand_changed(void)
{
    pthread_mutex_lock(&lock);
    follow_demand();
    pthread_mutex_unlock(&lock);
}

/* ---- forks and exit --------------------------------------------------------------------------- */

static void fork_prepare(void)
{
    pthread_mutex_lock(&lock);
    forking_pid = getpid();
    if (opscope__torch.registry != NULL) {
        pthread_mutex_lock(opscope__torch.registry);
    }
    opscope__torch_ops_lock();
    opscope__torch_stacks_lock();
}

static void fork_done(void)
{
    if (forking_pid != getpid()) {
        opscope__torch_stacks_fork_child();
    }
    opscope__torch_stacks_unlock();
    opscope__torch_ops_unlock();
    if (opscope__torch.registry != NULL) {
        pthread_mutex_unlock(opscope__torch.registry);
    }
    if (is_attached && forking_pid != getpid()) {
        opscope__torch_seed_sampling(); /* else the child draws as its parent does */
    }
    pthread_mutex_unlock(&lock);
}

static void thread_ends(void)
{
    opscope__torch_stack_thread_ends();
    opscope__torch_forget_labels();
}

static const struct opscope__demand_listener listener = {demand_changed, fork_prepare, fork_done,
                                                         thread_ends};

static void close_for_good(void)
{
    pthread_mutex_lock(&lock);
    is_closed = true;
    follow_demand();
    pthread_mutex_unlock(&lock);
}

/* ---- attach and detach ------------------------------------------------------------------------- */

/* With the lock held: most of it is done once in a process. */
static const char *prepare(const char *version)
{
    if (is_closed) {
        return "the process exits";
    }
    if (!opscope__torch_layout_of(version, &opscope__torch.layout)) {
        return "not a version known to work";
    }
    if (is_prepared) {
        return NULL;
    }
    opscope__demand_listen(&listener); /* from here on, a fork waits for the lock */
    const char *reason = opscope__torch_find();
    if (reason == NULL && atexit(close_for_good) != 0) {
        reason = "out of memory";
    }
    if (reason == NULL) {
        opscope__torch_register_shapes();
    }
    is_prepared = reason == NULL;
    return reason;
}

const char *opscope_torch_trial_begin(const char *version)
{
    pthread_mutex_lock(&lock);
    const char *reason = is_attached || is_trying ? "attached already" : prepare(version);
    is_trying = is_trying || reason == NULL;
    pthread_mutex_unlock(&lock);
    if (reason == NULL) {
        opscope__torch_trial_start();
    }
    return reason;
}

bool opscope_torch_cost_round(void)
{
    pthread_mutex_lock(&lock);
    const bool is_possible = is_trying;
    pthread_mutex_unlock(&lock);
    return is_possible && opscope__torch_trial_judge() == NULL && opscope__torch_cost_round();
}

const char *opscope_torch_trial_end(void)
{
    const char *reason = opscope__torch_trial_judge();
    opscope__torch_cost_end(reason == NULL);
    pthread_mutex_lock(&lock);
    is_trying = false;
    is_attached = reason == NULL;
    if (is_attached) {
        opscope__torch_seed_sampling();
        opscope__torch_carry_labels();
    }
    follow_demand();
    pthread_mutex_unlock(&lock);
    return reason;
}

void opscope_torch_detach(void)
{
    pthread_mutex_lock(&lock);
    is_attached = false;
    follow_demand();
    pthread_mutex_unlock(&lock);
}

bool opscope_torch_is_called(void)
{
    pthread_mutex_lock(&lock);
    bool is_called = handle != 0;
    pthread_mutex_unlock(&lock);
    return is_called;
}

uint64_t opscope_torch_added_count(void)
{
    pthread_mutex_lock(&lock);
    uint64_t count = added_count;
    pthread_mutex_unlock(&lock);
    return count;
}
