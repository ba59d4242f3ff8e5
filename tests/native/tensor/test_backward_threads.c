/* Backward on several threads: the same bits as on one, ranges with the caller's labels, failures,
 * many walks at once, walks within walks and within tasks; and the state of forked tasks. */
#include <pthread.h>

#include "opscope/debug_info.h"
#include "opscope/fork.h"
#include "tensors.h"

/* Above the size that makes a node worth another thread. */
enum { HEAVY = 70000 };

static opscope_tensor *leaf(uint64_t seed, int64_t size)
{
    opscope_tensor *out = numbers(seed, OPSCOPE_FLOAT32, 1, &size);
    CHECK(opscope_tensor_set_requires_grad(out, true) == OPSCOPE_OK);
    return out;
}

static void walk(opscope_tensor *root, bool retain_graph)
{
    if (opscope_backward(&root, NULL, 1, retain_graph, false) != OPSCOPE_OK) {
        fprintf(stderr, "backward: %s\n", opscope_tensor_error());
        _exit(1);
    }
}

/* ---- the same bits --------------------------------------------------------------------------- */

/* Many branches of different lengths from one leaf, joined again: its gradient is a sum whose last
 * bits depend on the order. The operators' own bits do not depend on how a kernel is split. */
static opscope_tensor *branches(opscope_tensor *x)
{
    opscope_tensor *sum = DO("core::mul", T(x), R(0.3));
    for (int i = 0; i < 12; i++) {
        opscope_tensor *branch = DO("core::mul", T(x), R(0.1 + 0.37 * i));
        for (int j = 0; j < i % 4; j++) {
            opscope_tensor *next = DO(j % 2 == 0 ? "core::relu" : "core::sqrt", T(branch));
            opscope_tensor_release(branch);
            branch = next;
        }
        opscope_tensor *longer = DO("core::add", T(sum), T(branch));
        RELEASE(sum, branch);
        sum = longer;
    }
    opscope_tensor *loss = DO("core::sum", T(sum));
    opscope_tensor_release(sum);
    return loss;
}

static opscope_tensor *gradient_on(int threads)
{
    CHECK(opscope_pool_set_threads(threads) == OPSCOPE_OK);
    opscope_tensor *x = leaf(1, HEAVY), *loss = branches(x);
    walk(loss, false);
    opscope_tensor *gradient = opscope_tensor_retain(opscope_tensor_grad(x));
    RELEASE(x, loss);
    return gradient;
}

static void many_threads_give_the_bits_of_one(void)
{
    opscope_tensor *alone = gradient_on(1);
    for (int i = 0; i < 20; i++) {
        opscope_tensor *together = gradient_on(2 + i % 4);
        CHECK(memcmp(opscope_tensor_data(alone), opscope_tensor_data(together),
                     HEAVY * sizeof(float)) == 0);
        opscope_tensor_release(together);
    }
    opscope_tensor_release(alone);
}

/* ---- who runs ---------------------------------------------------------------------------------- */

/* Two nodes' backward, each of which waits until the other runs as well. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int inside;
    uint64_t threads[2];
    bool labelled[2];
} meeting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, {0}, {false}};

static int meet(void *user, opscope_tensor *const *gradients, opscope_tensor **out)
{
    int self = *(int *)user;
    pthread_mutex_lock(&meeting.lock);
    meeting.threads[self] = opscope_thread_id();
    meeting.labelled[self] = opscope_debug_info_get("model_id") != NULL;
    meeting.inside++;
    pthread_cond_broadcast(&meeting.changed);
    while (meeting.inside < 2) {
        pthread_cond_wait(&meeting.changed, &meeting.lock);
    }
    pthread_mutex_unlock(&meeting.lock);
    CHECK(!opscope_grad_mode());
    out[0] = opscope_tensor_retain(gradients[0]);
    return OPSCOPE_OK;
}

static opscope_tensor *through(opscope_tensor *x,
                               int (*backward)(void *, opscope_tensor *const *, opscope_tensor **),
                               void *user)
{
    opscope_tensor *y =
        numbers(7, OPSCOPE_FLOAT32, opscope_tensor_dims(x), opscope_tensor_sizes(x));
    CHECK(opscope_autograd_record("my::ThroughBackward", &x, 1, &y, 1, backward, NULL, user) ==
          OPSCOPE_OK);
    return y;
}

struct seen {
    pthread_mutex_t lock;
    int count;
    uint64_t forward_thread;
};

static int note(const opscope_range *fn, void *user, void **context)
{
    struct seen *seen = user;
    (void)context;
    if (fn->op->scope == OPSCOPE_BACKWARD_FUNCTION && strncmp(fn->op->name, "my::", 4) == 0) {
        pthread_mutex_lock(&seen->lock);
        seen->count++;
        CHECK(fn->info->sequence_nr >= 0);
        CHECK_EQUAL(fn->info->forward_thread_id, seen->forward_thread);
        pthread_mutex_unlock(&seen->lock);
    }
    return OPSCOPE_OK;
}

static void branches_run_at_once_within_the_callers_state(void)
{
    CHECK(opscope_pool_set_threads(4) == OPSCOPE_OK);
    static int names[] = {0, 1};
    struct seen seen = {PTHREAD_MUTEX_INITIALIZER, 0, opscope_thread_id()};
    opscope_tensor *x = leaf(1, HEAVY), *a = through(x, meet, &names[0]),
                   *b = through(x, meet, &names[1]);
    opscope_tensor *both = DO("core::add", T(a), T(b)), *loss = DO("core::sum", T(both));
    opscope_debug_info_guard guard;
    CHECK(opscope_debug_info_push("model_id", "m", &guard) == OPSCOPE_OK);
    opscope_handle handle;
    const opscope_callback callback = {.start = note, .user = &seen, .sampling_prob = 1};
    CHECK(opscope_add_thread_local_callback(&callback, &handle) == OPSCOPE_OK);
    walk(loss, false);
    opscope_remove_callback(handle, true);
    opscope_debug_info_pop(&guard);
    CHECK(meeting.threads[0] != meeting.threads[1]);
    CHECK(meeting.labelled[0] && meeting.labelled[1]);
    CHECK_EQUAL(seen.count, 2);
    CHECK(at(opscope_tensor_grad(x), 3) == 2);
    RELEASE(x, a, b, both, loss);
}

/* ---- failures ------------------------------------------------------------------------------------ */

static int refuse(void *user, opscope_tensor *const *gradients, opscope_tensor **out)
{
    (void)user;
    (void)gradients;
    (void)out;
    return opscope_tensor_fail(OPSCOPE_ERROR_INDEX, "not today");
}

static void a_failure_in_a_branch_reaches_the_caller(void)
{
    for (int threads = 1; threads <= 4; threads += 3) {
        CHECK(opscope_pool_set_threads(threads) == OPSCOPE_OK);
        opscope_tensor *x = leaf(1, HEAVY), *more = branches(x), *y = through(x, refuse, NULL);
        opscope_tensor *sum = DO("core::sum", T(y)), *loss = DO("core::add", T(more), T(sum));
        CHECK(opscope_backward(&loss, NULL, 1, false, false) < 0);
        CHECK_TEXT(opscope_tensor_error(), "not today");
        CHECK_EQUAL(opscope_tensor_error_kind(), OPSCOPE_ERROR_INDEX);
        CHECK(opscope_backward(&loss, NULL, 1, false, false) < 0);
        CHECK_HAS(opscope_tensor_error(), "core::AddBackward: backward a second time");
        RELEASE(x, more, y, sum, loss);
    }
}

/* ---- many walks ---------------------------------------------------------------------------------- */

enum { WALKERS = 8, WALKS = 25 };

static opscope_tensor *shared;

static void *walk_own_graphs(void *unused)
{
    (void)unused;
    for (int i = 0; i < WALKS; i++) {
        opscope_tensor *y = DO("core::mul", T(shared), I(2)), *loss = DO("core::sum", T(y));
        walk(loss, false);
        RELEASE(y, loss);
    }
    return NULL;
}

static void run_all(void *(*body)(void *), void *arg)
{
    pthread_t threads[WALKERS];
    for (int i = 0; i < WALKERS; i++) {
        CHECK(pthread_create(&threads[i], NULL, body, arg) == 0);
    }
    for (int i = 0; i < WALKERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void threads_add_to_one_leaf(void)
{
    static const int64_t sizes[] = {3, HEAVY};
    for (int i = 0; i < 2; i++) {
        shared = leaf(1, sizes[i]);
        run_all(walk_own_graphs, NULL);
        CHECK(at(opscope_tensor_grad(shared), 2) == 2 * WALKERS * WALKS);
        opscope_tensor_release(shared);
    }
}

static void *walk_retained(void *root)
{
    for (int i = 0; i < WALKS; i++) {
        walk(root, true);
    }
    return NULL;
}

static void threads_walk_one_retained_graph(void)
{
    opscope_tensor *x = leaf(1, 5), *y = DO("core::exp", T(x)),
                   *view = DO("core::slice", T(y), I(0), I(1));
    opscope_tensor *loss = DO("core::sum", T(view));
    run_all(walk_retained, loss);
    CHECK_NEAR(at(opscope_tensor_grad(x), 3), WALKERS * WALKS * exp(at(x, 3)), 1e-4);
    RELEASE(x, y, view, loss);
}

static int spenders; /* atomic */

static void *spend(void *root)
{
    opscope_tensor *loss = root;
    int status = opscope_backward(&loss, NULL, 1, false, false);
    if (status == OPSCOPE_OK) {
        __atomic_fetch_add(&spenders, 1, __ATOMIC_RELAXED);
    } else {
        CHECK_HAS(opscope_tensor_error(), "backward a second time");
    }
    return NULL;
}

static void one_of_many_threads_spends_a_graph(void)
{
    for (int i = 0; i < 20; i++) {
        opscope_tensor *x = leaf(1, 5), *y = DO("core::exp", T(x)), *loss = DO("core::sum", T(y));
        spenders = 0;
        run_all(spend, loss);
        CHECK_EQUAL(spenders, 1);
        CHECK_NEAR(at(opscope_tensor_grad(x), 3), exp(at(x, 3)), 1e-6);
        RELEASE(x, y, loss);
    }
}

static opscope_tensor *viewed;

static void *ask_view(void *view)
{
    CHECK(opscope_tensor_requires_grad(view));
    opscope_tensor *more = DO("core::mul", T((opscope_tensor *)view), I(3));
    CHECK_TEXT(opscope_node_name(opscope_node_next(opscope_tensor_grad_fn(more), 0)),
               "core::StridedViewBackward");
    opscope_tensor_release(more);
    return NULL;
}

static void threads_ask_a_view_whose_base_was_written(void)
{
    for (int i = 0; i < 20; i++) {
        opscope_tensor *x = leaf(1, 5), *y = DO("core::exp", T(x));
        viewed = DO("core::slice", T(y), I(0), I(1));
        opscope_tensor *same = DO("core::mul_", T(y), T(x));
        run_all(ask_view, viewed);
        RELEASE(x, y, viewed, same);
    }
}

/* ---- within ---------------------------------------------------------------------------------------- */

static int walk_within(void *user, opscope_tensor *const *gradients, opscope_tensor **out)
{
    int *depth = user;
    bool before = opscope_grad_mode_set(true);
    opscope_tensor *x = leaf(1, HEAVY);
    opscope_tensor *loss;
    if (--*depth > 0) {
        opscope_tensor *y = through(x, walk_within, depth);
        loss = DO("core::sum", T(y));
        opscope_tensor_release(y);
    } else {
        loss = branches(x);
    }
    walk(loss, false);
    RELEASE(x, loss);
    opscope_grad_mode_set(before);
    out[0] = opscope_tensor_retain(gradients[0]);
    return OPSCOPE_OK;
}

static void a_walk_within_a_walk(void)
{
    int depth = 10;
    opscope_tensor *x = leaf(1, HEAVY), *more = branches(x);
    opscope_tensor *y = through(x, walk_within, &depth), *sum = DO("core::sum", T(y));
    opscope_tensor *loss = DO("core::add", T(sum), T(more));
    walk(loss, false);
    CHECK_EQUAL(depth, 0);
    RELEASE(x, y, more, sum, loss);
}

static int walk_in_a_task(void *arg)
{
    (void)arg;
    opscope_tensor *x = leaf(1, HEAVY), *loss = branches(x);
    walk(loss, false);
    RELEASE(x, loss);
    return OPSCOPE_OK;
}

static void walks_in_tasks_of_a_small_pool_all_end(void)
{
    CHECK(opscope_pool_set_threads(2) == OPSCOPE_OK);
    opscope_future *futures[16];
    for (int i = 0; i < 16; i++) {
        CHECK(opscope_fork(walk_in_a_task, NULL, &futures[i]) == OPSCOPE_OK);
    }
    for (int i = 0; i < 16; i++) {
        int result;
        CHECK(opscope_wait(futures[i], &result) == OPSCOPE_OK && result == OPSCOPE_OK);
        opscope_future_release(futures[i]);
    }
}

/* ---- forked tasks ------------------------------------------------------------------------------------ */

struct task {
    opscope_tensor *input, *output;
};

static int square(void *arg)
{
    struct task *task = arg;
    task->output = DO("core::mul", T(task->input), T(task->input));
    return opscope_grad_mode() ? 1 : 0;
}

static void a_task_takes_grad_mode_along_and_gives_history_back(void)
{
    opscope_tensor *x = leaf(1, 3);
    for (int on = 0; on < 2; on++) {
        struct task task = {x, NULL};
        bool before = opscope_grad_mode_set(on != 0);
        opscope_future *future;
        CHECK(opscope_fork(square, &task, &future) == OPSCOPE_OK);
        opscope_grad_mode_set(before);
        int result;
        CHECK(opscope_wait(future, &result) == OPSCOPE_OK);
        opscope_future_release(future);
        CHECK_EQUAL(result, on);
        CHECK_EQUAL(opscope_tensor_requires_grad(task.output), on);
        if (on) {
            opscope_tensor *loss = DO("core::sum", T(task.output));
            walk(loss, false);
            CHECK_NEAR(at(opscope_tensor_grad(x), 1), 2 * at(x, 1), 1e-6);
            opscope_tensor_release(loss);
        }
        opscope_tensor_release(task.output);
    }
    CHECK(opscope_grad_mode());
    opscope_tensor_release(x);
}

int main(void)
{
    RUN(many_threads_give_the_bits_of_one);
    RUN(branches_run_at_once_within_the_callers_state);
    RUN(a_failure_in_a_branch_reaches_the_caller);
    RUN(threads_add_to_one_leaf);
    RUN(threads_walk_one_retained_graph);
    RUN(one_of_many_threads_spends_a_graph);
    RUN(threads_ask_a_view_whose_base_was_written);
    RUN(a_walk_within_a_walk);
    RUN(walks_in_tasks_of_a_small_pool_all_end);
    RUN(a_task_takes_grad_mode_along_and_gives_history_back);
    return 0;
}
