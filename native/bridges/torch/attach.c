/* torch/attach.c -- the life cycle of the PyTorch bridge: attach and detach. While it is attached,
 * it is among PyTorch's callbacks only while a callback of this library needs ranges.
 *
 * PyTorch's registry of global callbacks is a vector under a lock, and a version counter. Adding
 * and removing change both under the lock. A thread compares the version when it opens a range; if
 * it changed, the thread copies the vector under the lock and rebuilds its own cache. Adding and
 * removing are therefore safe at any time from any thread while operators run; an open range keeps
 * the callbacks it started with. One window costs each thread two such rebuilds, and nothing more
 * once it is closed.
 *
 * Lock: `lock` guards the state in this file; PyTorch's lock and this library's registry lock come
 * after it. The bridge holds these locks during a fork, so that no thread that the child does not
 * have leaves one locked there. At exit PyTorch destroys its registry. A function registered later
 * with atexit, which therefore runs earlier, ends the bridge for good.
 */
#include "private/torch.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/atomics.h"
#include "bridges/torch/block.h"
#include "bridges/torch/cost.h"
#include "bridges/torch/count.h"
#include "bridges/torch/header.h"
#include "bridges/torch/labels.h"
#include "bridges/torch/layout.h"
#include "bridges/torch/memory.h"
#include "bridges/torch/op.h"
#include "bridges/torch/producer.h"
#include "bridges/torch/range.h"
#include "bridges/torch/registry.h"
#include "bridges/torch/stack.h"
#include "bridges/torch/tensor.h"
#include "bridges/torch/thread_state.h"
#include "bridges/torch/trial.h"
#include "bridges/torch/values.h"
#include "record/demand.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_prepared; /* symbols found, and demand and fork listeners registered */
static bool is_trying;   /* between begin and end of a trial */
static bool is_attached;
static bool is_closed;  /* the process exits: leave PyTorch alone */
static bool has_blocks; /* torch/python/blocks.c is called for record_function blocks */
/* The registrations in PyTorch. Outer ranges have one of their own, which stays while those of
 * other callbacks come and go. PyTorch checks scopes separately, so operators cost nothing
 * meanwhile. Without a layout there is one for each scope instead, which tells the scope. */
enum { OPERATORS, OUTER_RANGES, BASIC, REGISTRATIONS = BASIC + OPSCOPE_SCOPE_COUNT };
static struct {
    uint64_t handle; /* PyTorch's; 0: not added */
    struct opscope__torch_callback added;
} registered[REGISTRATIONS]; /* lock */
static uint64_t added_count;
/* Why parts of the bridge do not work; NULL: they do. Written while attaching. */
static const char *layout_fault; /* ranges by PyTorch's functions alone */
static const char *tensors_fault;
static const char *labels_fault;
static const char *memory_fault;
static const char *states_fault;
static const char *count_fault;
static bool declares_state; /* PyTorch's header */
static pid_t forking_pid;   /* while a fork is in progress */

/* ---- added while wanted ----------------------------------------------------------------------- */

static bool is_same(const struct opscope__torch_callback *a,
                    const struct opscope__torch_callback *b)
{
    return a->sampling_prob == b->sampling_prob &&
           memcmp(a->scopes, b->scopes, sizeof a->scopes) == 0 &&
           a->needs_inputs == b->needs_inputs && a->needs_outputs == b->needs_outputs;
}

/* With the lock held: makes the registration match `wanted`; NULL: none. */
static void register_now(int which, const struct opscope__torch_callback *wanted)
{
    uint64_t *handle = &registered[which].handle;
    if (*handle != 0 && wanted != NULL && is_same(wanted, &registered[which].added)) {
        return;
    }
    if (*handle != 0) {
        /* PyTorch writes a line to stderr for a handle that it does not have. */
        if (opscope__torch_registry_has(*handle)) {
            opscope__torch.remove_callback(*handle);
        }
        *handle = 0;
    }
    if (wanted != NULL) {
        *handle = opscope__torch.add_global_callback(*wanted);
        registered[which].added = *wanted;
        added_count++;
    }
}

static void set_scopes(struct opscope__torch_callback *callback, uint32_t scopes)
{
    for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
        callback->scopes[scope] = (scopes >> scope & 1u) != 0;
    }
}

OPSCOPE__CXX_ENTRY(opscope__torch_range_start);
OPSCOPE__CXX_ENTRY(opscope__torch_range_start_drawn);

/* The registration that the demand needs. If a single callback has a probability, PyTorch draws for
 * it, because a miss costs least there. The recorder then observes only operators: for every scope
 * that is sampled, PyTorch would draw again at each node of a backward. */
static struct opscope__torch_callback callback_for(const struct opscope__demand *demand)
{
    const bool is_drawn = demand->prob < 1.0;
    const uint32_t scopes =
        (is_drawn && demand->is_recorder ? demand->scopes & 1u << OPSCOPE_FUNCTION
                                         : demand->scopes) &
        ~demand->outer_scopes;
    struct opscope__torch_callback callback = {
        .start = is_drawn ? OPSCOPE__CXX_ENTRY_OF(opscope__torch_range_start_drawn)
                          : OPSCOPE__CXX_ENTRY_OF(opscope__torch_range_start),
        .end = opscope__torch_range_end,
        .sampling_prob = demand->prob,
        .needs_inputs = demand->needs_inputs,
        .needs_outputs = demand->needs_outputs};
    set_scopes(&callback, scopes);
    return callback;
}

/* The same for outer ranges, which other callbacks may need as well. */
static struct opscope__torch_callback outer_callback_for(const struct opscope__demand *demand)
{
    const bool is_shared = (demand->scopes & demand->outer_scopes) != 0;
    struct opscope__torch_callback callback = {
        .start = OPSCOPE__CXX_ENTRY_OF(opscope__torch_range_start),
        .end = opscope__torch_range_end,
        .sampling_prob = 1.0,
        .needs_inputs = is_shared && demand->needs_inputs,
        .needs_outputs = is_shared && demand->needs_outputs};
    set_scopes(&callback, demand->outer_scopes);
    return callback;
}

/* While PyTorch has a callback for any scope, and its own function sets the states of threads
 * (torch/thread_state.h), each node of a backward takes 0.4 us longer. So if nothing else wants
 * outer ranges, the bridge follows record_function blocks without a callback. It then misses the
 * rare outer ranges that C++ code opens itself. */
static bool can_follow_blocks(const struct opscope__demand *demand)
{
    return has_blocks && demand->outer_scopes == 1u << OPSCOPE_USER_SCOPE &&
           (demand->scopes & demand->outer_scopes) == 0;
}

/* With the lock held. */
static void follow_demand_basic(const struct opscope__demand *demand)
{
    for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
        struct opscope__torch_callback callback = {
            .start = opscope__torch_range_entries_basic[scope],
            .end = opscope__torch_range_end,
            .sampling_prob = 1.0};
        callback.scopes[scope] = true;
        const bool is_wanted = ((demand->scopes | demand->outer_scopes) >> scope & 1u) != 0;
        register_now(BASIC + scope, is_wanted ? &callback : NULL);
    }
}

/* With the lock held. */
static void follow_demand(void)
{
    struct opscope__demand demand = {0};
    if (is_attached && !is_closed) {
        opscope__demand_read(&demand);
    }
    const bool wants_memory = demand.scopes != 0;
    if (wants_memory) {
        opscope__torch_want_memory(true);
    }
    /* Partner: the load in torch/range.c, which may see the change slightly late. */
    opscope__store_relaxed(&opscope__torch_is_sampled, demand.outer_scopes != 0);
    const bool follows_blocks = can_follow_blocks(&demand);
    if (!follows_blocks) {
        opscope__store_relaxed(&opscope__torch_follows_blocks, false);
    }
    /* Also in windows, which are compared with what was counted before them. */
    opscope__torch_want_count(demand.scopes != 0 && demand.outer_scopes != 0);
    if (demand.only_counts && opscope__torch_counts()) {
        demand.scopes = 0;
    }
    demand.outer_scopes = follows_blocks ? 0 : demand.outer_scopes;
    if (opscope__torch.is_basic) {
        follow_demand_basic(&demand);
    } else {
        const struct opscope__torch_callback operators = callback_for(&demand);
        const struct opscope__torch_callback outer = outer_callback_for(&demand);
        register_now(OPERATORS, (demand.scopes & ~demand.outer_scopes) != 0 ? &operators : NULL);
        register_now(OUTER_RANGES, demand.outer_scopes != 0 ? &outer : NULL);
    }
    if (!wants_memory) {
        opscope__torch_want_memory(false);
    }
    if (follows_blocks) {
        /* Partner: torch/python/blocks.c, which follows a block only if it reads this before the
         * block starts: then PyTorch calls no callback for that block. */
        opscope__store_release(&opscope__torch_follows_blocks, true);
    }
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
        opscope__torch_seed_sampling(); /* otherwise the child draws the same numbers as its parent
                                         */
    }
    pthread_mutex_unlock(&lock);
}

static void thread_ends(void)
{
    opscope__torch_stack_thread_ends();
    opscope__torch_forget_labels();
}

static const struct opscope__demand_listener listener = {
    .changed = demand_changed,
    .fork_prepare = fork_prepare,
    .fork_done = fork_done,
    .thread_ends = thread_ends,
    .thread_recorded = opscope__torch_thread_recorded};

static void close_for_good(void)
{
    pthread_mutex_lock(&lock);
    is_closed = true;
    follow_demand();
    pthread_mutex_unlock(&lock);
}

/* ---- attach and detach ------------------------------------------------------------------------- */

/* With the lock held: most steps run once per process. */
static const char *prepare(const char *header)
{
    if (is_closed) {
        return "the process is exiting";
    }
    if (is_prepared) {
        return NULL;
    }
    opscope__demand_listen(&listener); /* from here on, a fork waits for the lock */
    const char *reason = opscope__torch_find();
    if (reason == NULL) {
        opscope__torch.registry = opscope__torch_find_registry();
        reason = opscope__torch.registry == NULL ? "the lock of PyTorch's callbacks was not found"
                 : atexit(close_for_good) != 0   ? "out of memory"
                                                 : NULL;
    }
    if (reason == NULL) {
        layout_fault = opscope__torch_find_layout(&opscope__torch.layout);
        if (layout_fault == NULL && !opscope__torch_header_is_known(header)) {
            layout_fault = "its record_function.h declares unexpected fields";
        }
        declares_state = opscope__torch_header_declares_state(header);
        tensors_fault = opscope__torch_find_tensors();
        opscope__torch_register_shapes();
    }
    is_prepared = reason == NULL;
    return reason;
}

const char *opscope_torch_trial_begin(const char *header)
{
    pthread_mutex_lock(&lock);
    const char *reason = is_attached || is_trying ? "already attached" : prepare(header);
    if (reason == NULL) {
        is_trying = true;
        opscope__torch.is_basic = layout_fault != NULL;
    }
    pthread_mutex_unlock(&lock);
    if (reason == NULL) {
        opscope__torch_trial_start();
    }
    return reason;
}

/* During a trial: ends it, and decides whether the layout is used. */
static const char *judge(void)
{
    const char *reason = opscope__torch_trial_judge();
    pthread_mutex_lock(&lock);
    opscope__torch.is_basic = layout_fault != NULL || opscope__torch_trial_layout() != NULL;
    pthread_mutex_unlock(&lock);
    return reason;
}

bool opscope_torch_cost_round(void)
{
    pthread_mutex_lock(&lock);
    const bool is_possible = is_trying;
    pthread_mutex_unlock(&lock);
    return is_possible && judge() == NULL && opscope__torch_cost_round();
}

const char *opscope_torch_trial_end(void)
{
    const char *reason = judge();
    if (reason == NULL) { /* before the costs are set, which depend on it */
        pthread_mutex_lock(&lock);
        states_fault = opscope__torch_keep_states(declares_state);
        count_fault = opscope__torch_find_count();
        pthread_mutex_unlock(&lock);
    }
    opscope__torch_cost_end(reason == NULL);
    pthread_mutex_lock(&lock);
    is_trying = false;
    is_attached = reason == NULL;
    if (is_attached) {
        opscope__torch_seed_sampling();
        labels_fault = opscope__torch_carry_labels();
        memory_fault = opscope__torch_follow_memory();
    }
    follow_demand();
    pthread_mutex_unlock(&lock);
    opscope__torch_follow_archives(reason == NULL);
    return reason;
}

const char *opscope_torch_fault(opscope_torch_part part)
{
    switch (part) {
    case OPSCOPE_TORCH_FIELDS:
        return layout_fault != NULL ? layout_fault : opscope__torch_trial_layout();
    case OPSCOPE_TORCH_VALUES:
        return opscope__torch.is_basic ? NULL : opscope__torch_values_fault();
    case OPSCOPE_TORCH_TENSORS:
        return opscope__torch.is_basic ? NULL : tensors_fault;
    case OPSCOPE_TORCH_LABELS:
        return labels_fault;
    case OPSCOPE_TORCH_MEMORY:
        return memory_fault;
    case OPSCOPE_TORCH_STATES:
        return states_fault;
    case OPSCOPE_TORCH_COUNT:
        return count_fault;
    case OPSCOPE_TORCH_ARCHIVES:
        return opscope__torch_archives_fault();
    }
    return NULL;
}

void opscope_torch_follow_blocks(bool is_possible)
{
    pthread_mutex_lock(&lock);
    has_blocks = is_possible;
    follow_demand();
    pthread_mutex_unlock(&lock);
}

void opscope_torch_detach(void)
{
    pthread_mutex_lock(&lock);
    is_attached = false;
    follow_demand();
    opscope__torch_leave_memory();
    opscope__torch_leave_states();
    opscope__torch_leave_count();
    pthread_mutex_unlock(&lock);
    opscope__torch_follow_archives(false);
}

bool opscope_torch_is_called(void)
{
    pthread_mutex_lock(&lock);
    bool is_called =
        registered[OPERATORS].handle != 0 || registered[BASIC + OPSCOPE_FUNCTION].handle != 0;
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
