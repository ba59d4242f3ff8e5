/* tests/native/test_pool.c -- fork and wait: results, carried states, nesting deeper than the pool,
 * and the state after a fork of the process. */
#include <pthread.h>
#include <sched.h>

#include "opscope/debug_info.h"
#include "opscope/fork.h"
#include "ranges.h"

static int give_back(void *arg)
{
    return *(int *)arg;
}

static opscope_future *fork_task(opscope_task task, void *arg)
{
    opscope_future *future = NULL;
    CHECK_EQUAL(opscope_fork(task, arg, &future), OPSCOPE_OK);
    return future;
}

static int wait_and_release(opscope_future *future)
{
    int result = 1234567;
    CHECK_EQUAL(opscope_wait(future, &result), OPSCOPE_OK);
    CHECK(opscope_future_done(future));
    opscope_future_release(future);
    return result;
}

static void every_task_runs_once_and_its_result_comes_back(void)
{
    enum { TASKS = 200 };
    static int results[TASKS];
    opscope_future *futures[TASKS];
    for (int i = 0; i < TASKS; i++) {
        results[i] = i - 50;
        futures[i] = fork_task(give_back, &results[i]);
    }
    for (int i = TASKS - 1; i >= 0; i--) {
        CHECK_EQUAL(wait_and_release(futures[i]), i - 50);
    }
}

static void waiting_again_gives_the_same_result(void)
{
    int value = -13, result = 0;
    opscope_future *future = fork_task(give_back, &value);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(opscope_wait(future, &result), OPSCOPE_OK);
        CHECK_EQUAL(result, -13);
    }
    opscope_future_release(future);
}

static int add_one(void *arg)
{
    __atomic_fetch_add((int *)arg, 1, __ATOMIC_RELEASE);
    return OPSCOPE_OK;
}

static void a_task_whose_future_was_released_still_runs(void)
{
    int runs = 0;
    for (int i = 0; i < 50; i++) {
        opscope_future_release(fork_task(add_one, &runs));
    }
    while (__atomic_load_n(&runs, __ATOMIC_ACQUIRE) < 50) {
        sched_yield();
    }
}

/* Counts the leaves of a tree whose nodes are tasks that fork three more and wait. */
static int count_leaves(void *depth)
{
    int below = *(int *)depth - 1, leaves = 0;
    if (below < 0) {
        return 1;
    }
    opscope_future *futures[3];
    for (int i = 0; i < 3; i++) {
        futures[i] = fork_task(count_leaves, &below);
    }
    for (int i = 0; i < 3; i++) {
        leaves += wait_and_release(futures[i]);
    }
    return leaves;
}

static void tasks_fork_and_wait_much_deeper_than_the_pool_is_wide(void)
{
    int depth = 6;
    CHECK_EQUAL(wait_and_release(fork_task(count_leaves, &depth)), 729);
}

static int chain(void *depth)
{
    int below = *(int *)depth - 1;
    return below < 0 ? 0 : 1 + wait_and_release(fork_task(chain, &below));
}

static void a_chain_of_tasks_each_waiting_for_the_next_ends(void)
{
    int depth = 200;
    CHECK_EQUAL(wait_and_release(fork_task(chain, &depth)), 200);
}

static pthread_barrier_t barrier;

static int meet(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    return OPSCOPE_OK;
}

static void meet_four_times(void)
{
    opscope_future *futures[4];
    for (int i = 0; i < 4; i++) {
        futures[i] = fork_task(meet, NULL);
    }
    for (int i = 0; i < 4; i++) {
        while (!opscope_future_done(futures[i])) { /* a wait would run tasks that have not begun */
            sched_yield();
        }
        CHECK_EQUAL(wait_and_release(futures[i]), OPSCOPE_OK);
    }
}

static void as_many_tasks_as_threads_run_at_the_same_time(void)
{
    CHECK_EQUAL(opscope_pool_set_threads(4), OPSCOPE_OK);
    CHECK_EQUAL(opscope_pool_threads(), 4);
    CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, 4), 0);
    for (int round = 0; round < 20; round++) {
        pid_t child = fork(); /* with an empty pool */
        if (child == 0) {
            int value = 0;
            opscope_future *first = fork_task(give_back, &value);
            while (!opscope_future_done(first)) {
                sched_yield();
            }
            meet_four_times(); /* one thread is idle, the others have not started */
            meet_four_times(); /* all are idle */
            _exit(0);
        }
        CHECK(check_child(child));
    }
    pthread_barrier_destroy(&barrier);
}

static void bad_thread_counts_are_refused(void)
{
    CHECK_EQUAL(opscope_pool_set_threads(0), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(opscope_pool_set_threads(-1), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(opscope_pool_set_threads(257), OPSCOPE_ERR_INVALID);
    CHECK(opscope_pool_threads() >= 1);
}

static int see_state(void *calls)
{
    CHECK_TEXT(opscope_debug_info_get("model_id"), "resnet");
    opscope_debug_info_guard guard;
    CHECK_EQUAL(opscope_debug_info_push("model_id", "inner", &guard), OPSCOPE_OK);
    run_ranges(op_named("task"), 1);
    opscope_debug_info_pop(&guard);
    (void)calls;
    return OPSCOPE_OK;
}

static int see_no_state(void *unused)
{
    (void)unused;
    CHECK(opscope_debug_info_current() == NULL);
    run_ranges(op_named("task"), 1);
    return OPSCOPE_OK;
}

static void a_task_runs_in_the_state_of_its_fork_and_leaves_the_threads_as_they_were(void)
{
    enum { TASKS = 40 };
    struct calls calls = {0};
    opscope_future *futures[2 * TASKS];
    opscope_debug_info_guard guard;
    CHECK_EQUAL(opscope_debug_info_push("model_id", "resnet", &guard), OPSCOPE_OK);
    opscope_handle handle = add_local(counting(&calls));
    for (int i = 0; i < TASKS; i++) {
        futures[i] = fork_task(see_state, &calls);
    }
    opscope_debug_info_pop(&guard);
    CHECK_EQUAL(opscope_remove_callback(handle, false), OPSCOPE_OK);
    for (int i = TASKS; i < 2 * TASKS; i++) {
        futures[i] = fork_task(see_no_state, NULL);
    }
    for (int i = 0; i < 2 * TASKS; i++) {
        CHECK_EQUAL(wait_and_release(futures[i]), OPSCOPE_OK);
    }
    CHECK_EQUAL(calls.ends, TASKS);
    CHECK(opscope_debug_info_current() == NULL);
}

static int running, may_end;

static int run_until_told(void *unused)
{
    (void)unused;
    __atomic_store_n(&running, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&may_end, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
    return 5;
}

static void in_a_forked_child_unfinished_tasks_are_lost_and_new_ones_run(void)
{
    int value = 77;
    opscope_future *done = fork_task(give_back, &value);
    int result;
    CHECK_EQUAL(opscope_wait(done, &result), OPSCOPE_OK);
    opscope_future *unfinished = fork_task(run_until_told, NULL);
    while (!__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
    opscope_future *behind[300]; /* more than all threads together, so some are only queued */
    for (int i = 0; i < 300; i++) {
        behind[i] = fork_task(give_back, &value);
    }
    pid_t child = fork();
    if (child == 0) {
        result = 1;
        CHECK_EQUAL(opscope_wait(unfinished, &result), OPSCOPE_ERR_LOST);
        CHECK_EQUAL(result, 1);
        CHECK_EQUAL(opscope_wait(done, &result), OPSCOPE_OK);
        CHECK_EQUAL(result, 77);
        for (int i = 0; i < 300; i++) {
            int status = opscope_wait(behind[i], &result);
            CHECK(status == OPSCOPE_OK || status == OPSCOPE_ERR_LOST);
        }
        opscope_future_release(unfinished);
        int depth = 4;
        CHECK_EQUAL(wait_and_release(fork_task(count_leaves, &depth)), 81);
        _exit(0);
    }
    CHECK(check_child(child));
    __atomic_store_n(&may_end, 1, __ATOMIC_RELEASE);
    CHECK_EQUAL(wait_and_release(unfinished), 5);
    for (int i = 0; i < 300; i++) {
        CHECK_EQUAL(wait_and_release(behind[i]), 77);
    }
    opscope_future_release(done);
}

int main(void)
{
    CHECK_EQUAL(opscope_pool_set_threads(2), OPSCOPE_OK);
    RUN(every_task_runs_once_and_its_result_comes_back);
    RUN(waiting_again_gives_the_same_result);
    RUN(a_task_whose_future_was_released_still_runs);
    RUN(tasks_fork_and_wait_much_deeper_than_the_pool_is_wide);
    RUN(a_chain_of_tasks_each_waiting_for_the_next_ends);
    RUN(as_many_tasks_as_threads_run_at_the_same_time);
    RUN(bad_thread_counts_are_refused);
    RUN(a_task_runs_in_the_state_of_its_fork_and_leaves_the_threads_as_they_were);
    RUN(in_a_forked_child_unfinished_tasks_are_lost_and_new_ones_run);
    return 0;
}
