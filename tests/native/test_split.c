/* tests/native/test_split.c -- split: every piece once, on at most as many threads as the pool has,
 * within tasks, within pieces, from several threads at once, and in a forked process; and the
 * allowed processors of a woken thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "opscope/fork.h"

enum { THREADS = 4, PIECE_LIMIT = 300 };

struct runs {
    int of[PIECE_LIMIT]; /* one per piece: written without atomics, so that a race would show */
};

static void count_run(int index, void *arg)
{
    ((struct runs *)arg)->of[index]++;
}

static void check_split(int count)
{
    struct runs runs = {{0}};
    opscope_split(count, count_run, &runs);
    for (int i = 0; i < PIECE_LIMIT; i++) {
        CHECK_EQUAL(runs.of[i], i < count);
    }
}

static void every_piece_runs_once(void)
{
    static const int counts[] = {0, 1, 2, 3, THREADS, 17, PIECE_LIMIT};
    for (int round = 0; round < 500; round++) {
        check_split(counts[round % (int)(sizeof counts / sizeof *counts)]);
    }
}

static pthread_barrier_t barrier;

static void meet(int index, void *arg)
{
    (void)index;
    (void)arg;
    CHECK_EQUAL(opscope_pool_free_threads(), 1); /* the others work here too, or are about to */
    pthread_barrier_wait(&barrier);
}

static void as_many_pieces_as_threads_run_at_the_same_time(void)
{
    CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (int round = 0; round < 100; round++) {
        opscope_split(THREADS, meet, NULL);
    }
    pthread_barrier_destroy(&barrier);
}

static struct {
    int now, most;
    int pieces;
} at_work; /* atomic */

static void work_a_little(int index, void *arg)
{
    (void)index;
    (void)arg;
    int now = __atomic_add_fetch(&at_work.now, 1, __ATOMIC_SEQ_CST);
    int most = __atomic_load_n(&at_work.most, __ATOMIC_SEQ_CST);
    while (now > most && !__atomic_compare_exchange_n(&at_work.most, &most, now, false,
                                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    sched_yield();
    __atomic_sub_fetch(&at_work.now, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&at_work.pieces, 1, __ATOMIC_SEQ_CST);
}

static int split_again_and_again(void *arg)
{
    for (int i = 0; i < 50; i++) {
        opscope_split(2 * THREADS, work_a_little, arg);
    }
    return OPSCOPE_OK;
}

static void tasks_that_split_never_have_more_at_work_than_the_pool_has_threads(void)
{
    opscope_future *futures[2 * THREADS];
    for (int i = 0; i < 2 * THREADS; i++) {
        CHECK_EQUAL(opscope_fork(split_again_and_again, NULL, &futures[i]), OPSCOPE_OK);
    }
    for (int i = 0; i < 2 * THREADS; i++) {
        while (!opscope_future_done(futures[i])) { /* a wait would also work here */
            sched_yield();
        }
        opscope_future_release(futures[i]);
    }
    CHECK_EQUAL(at_work.pieces, 2 * THREADS * 50 * 2 * THREADS);
    CHECK(at_work.most <= THREADS);
    CHECK(at_work.most > 1);
}

static void split_inside(int index, void *arg)
{
    (void)index;
    (void)arg;
    check_split(5);
}

static void a_piece_can_split(void)
{
    for (int i = 0; i < 50; i++) {
        opscope_split(2 * THREADS, split_inside, NULL);
    }
}

static void *split_from_a_thread(void *arg)
{
    for (int i = 0; i < 200; i++) {
        check_split(1 + i % 9);
    }
    return arg;
}

static void threads_split_at_the_same_time(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, split_from_a_thread, NULL), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void a_forked_process_splits_with_threads_of_its_own(void)
{
    pid_t child = fork();
    if (child == 0) {
        as_many_pieces_as_threads_run_at_the_same_time();
        _exit(0);
    }
    CHECK(check_child(child));
}

static int tell_free_threads(void *out)
{
    *(int *)out = opscope_pool_free_threads();
    return OPSCOPE_OK;
}

static void threads_at_work_are_not_free(void)
{
    CHECK_EQUAL(opscope_pool_free_threads(), THREADS);
    int seen = 0, result;
    opscope_future *future;
    CHECK_EQUAL(opscope_fork(tell_free_threads, &seen, &future), OPSCOPE_OK);
    while (!opscope_future_done(future)) {
        sched_yield();
    }
    CHECK_EQUAL(opscope_wait(future, &result), OPSCOPE_OK);
    opscope_future_release(future);
    CHECK_EQUAL(seen, THREADS); /* the waiting thread is not working */
}

static void a_pool_of_one_thread_leaves_all_to_the_caller(void)
{
    CHECK_EQUAL(opscope_pool_set_threads(1), OPSCOPE_OK);
    CHECK_EQUAL(opscope_pool_free_threads(), 1);
    check_split(9);
    CHECK_EQUAL(opscope_pool_set_threads(THREADS), OPSCOPE_OK);
}

/* A helper's own observations. */
struct helper {
    long caller, thread;
    int processor;
    cpu_set_t processors;
};

static void say_where(int index, void *arg)
{
    struct helper *helper = arg;
    (void)index;
    long self = syscall(SYS_gettid);
    if (self != helper->caller) {
        helper->thread = self;
        helper->processor = sched_getcpu();
        CHECK_EQUAL(sched_getaffinity(0, sizeof helper->processors, &helper->processors), 0);
    }
    pthread_barrier_wait(&barrier);
}

static void await_sleep(long thread)
{
    char path[64], state = 'R';
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", thread);
    while (state != 'S') {
        sched_yield();
        FILE *stat = fopen(path, "r");
        CHECK(stat != NULL);
        CHECK_EQUAL(fscanf(stat, "%*[^)]) %c", &state), 1);
        fclose(stat);
    }
}

/* The caller moves to the helper's processor; the helper must then be moved off it before it
 * wakes. */
static void a_thread_woken_from_its_own_processor_runs_on_another_and_may_run_on_all(void)
{
    cpu_set_t all, one;
    int elsewhere = 0;
    CHECK_EQUAL(sched_getaffinity(0, sizeof all, &all), 0);
    CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, 2), 0);
    struct helper helper = {.caller = syscall(SYS_gettid)};
    for (int round = 0; round < 50; round++) {
        opscope_split(2, say_where, &helper);
        CHECK(CPU_EQUAL(&helper.processors, &all));
        CPU_ZERO(&one);
        CPU_SET((size_t)helper.processor, &one);
        CHECK_EQUAL(sched_setaffinity(0, sizeof one, &one), 0);
        await_sleep(helper.thread);
        int slept_on = helper.processor;
        opscope_split(2, say_where, &helper);
        CHECK(CPU_EQUAL(&helper.processors, &all));
        elsewhere += helper.processor != slept_on;
        CHECK_EQUAL(sched_setaffinity(0, sizeof all, &all), 0);
        await_sleep(helper.thread);
    }
    CHECK(CPU_COUNT(&all) == 1 || elsewhere > 0);
    pthread_barrier_destroy(&barrier);
}

int main(void)
{
    CHECK_EQUAL(opscope_pool_set_threads(THREADS), OPSCOPE_OK);
    RUN(threads_at_work_are_not_free);
    RUN(every_piece_runs_once);
    RUN(as_many_pieces_as_threads_run_at_the_same_time);
    RUN(tasks_that_split_never_have_more_at_work_than_the_pool_has_threads);
    RUN(a_piece_can_split);
    RUN(threads_split_at_the_same_time);
    RUN(a_forked_process_splits_with_threads_of_its_own);
    RUN(a_pool_of_one_thread_leaves_all_to_the_caller);
    RUN(a_thread_woken_from_its_own_processor_runs_on_another_and_may_run_on_all);
    return 0;
}
