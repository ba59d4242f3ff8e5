/* tests/native/test_stress.c -- everything at once, for the sanitizers: operators on four threads
 * while callbacks are added, removed and freed, the recorder starts and stops, windows open and
 * close. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "opscope/debug_info.h"
#include "opscope/fork.h"
#include "ranges.h"
#include "read_segment.h"

enum { THREADS = 4, ROUNDS = 400, ALIVE = 0x600d, DEAD = 0xdead };

static bool must_stop;
static uint64_t ranges_run;

static bool goes_on(void)
{
    return !__atomic_load_n(&must_stop, __ATOMIC_ACQUIRE);
}

static void nest(const opscope_op *op, int depth)
{
    opscope_range range;
    opscope_range_open(&range, op, NULL);
    if (depth > 0) {
        nest(op, depth - 1);
    }
    opscope_range_close(&range);
}

static void *run_operators(void *unused)
{
    const opscope_op *ops[3] = {op_named("s0"), op_of("s1", OPSCOPE_USER_SCOPE, OPSCOPE_DATA),
                                op_named("s2")};
    opscope_range_info async = {.is_async = true};
    uint64_t count = 0;
    (void)unused;
    while (goes_on()) {
        opscope_debug_info_guard guard;
        CHECK_EQUAL(opscope_debug_info_push("model_id", count % 2 ? "a" : "b", &guard), OPSCOPE_OK);
        for (int i = 0; i < 50; i++) {
            nest(ops[i % 3], i % 5);
            count += 1 + (uint64_t)(i % 5);
        }
        opscope_range *range = opscope_range_begin(ops[0], &async);
        run_ranges(ops[1], 1);
        if (range != NULL) {
            opscope_range_end(range);
        }
        count += 2;
        opscope_debug_info_pop(&guard);
        sched_yield(); /* with two processors, lets the thread that changes things run */
    }
    __atomic_fetch_add(&ranges_run, count, __ATOMIC_RELAXED);
    return NULL;
}

static pthread_t threads[THREADS];

static void start_threads(void)
{
    must_stop = false;
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, run_operators, NULL), 0);
    }
}

static void stop_threads(void)
{
    __atomic_store_n(&must_stop, true, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
}

/* A callback that detects calls after its drop. */
struct living {
    uint64_t state;
    uint64_t inside;
};

static int check_start(const opscope_range *fn, void *user, void **context)
{
    struct living *living = user;
    (void)fn;
    CHECK_EQUAL(__atomic_load_n(&living->state, __ATOMIC_RELAXED), ALIVE);
    __atomic_fetch_add(&living->inside, 1, __ATOMIC_RELAXED);
    *context = user;
    return OPSCOPE_OK;
}

static int check_end(const opscope_range *fn, void *user, void *context)
{
    struct living *living = user;
    (void)fn;
    CHECK(context == user);
    CHECK_EQUAL(__atomic_load_n(&living->state, __ATOMIC_RELAXED), ALIVE);
    __atomic_fetch_sub(&living->inside, 1, __ATOMIC_RELAXED);
    return OPSCOPE_OK;
}

static void drop_living(void *user)
{
    struct living *living = user;
    CHECK_EQUAL(living->inside, 0);
    living->state = DEAD;
    free(living);
}

static opscope_handle add_living(double prob, struct living **out, bool dropped)
{
    struct living *living = malloc(sizeof *living);
    CHECK(living != NULL);
    *living = (struct living){.state = ALIVE};
    *out = living;
    return add_global((opscope_callback){.start = check_start,
                                         .end = check_end,
                                         .user = living,
                                         .drop = dropped ? drop_living : NULL,
                                         .sampling_prob = prob});
}

static void a_callback_removed_with_wait_may_be_freed_at_once(void)
{
    start_threads();
    for (int i = 0; i < ROUNDS; i++) {
        struct living *living;
        opscope_handle handle = add_living(i % 3 == 0 ? 0.3 : 1.0, &living, false);
        sched_yield();
        if (i % 4 == 1) {
            CHECK_EQUAL(opscope_disable_callback(handle), OPSCOPE_OK);
            CHECK_EQUAL(opscope_enable_callback(handle), OPSCOPE_OK);
        }
        CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
        CHECK_EQUAL(living->inside, 0);
        living->state = DEAD;
        free(living);
    }
    stop_threads();
}

static void a_callback_removed_without_wait_is_dropped_when_it_is_safe(void)
{
    start_threads();
    for (int i = 0; i < ROUNDS; i++) {
        struct living *living;
        opscope_handle handle = add_living(i % 3 == 0 ? 0.3 : 1.0, &living, true);
        sched_yield();
        CHECK_EQUAL(opscope_remove_callback(handle, false), OPSCOPE_OK);
    }
    stop_threads();
}

/* One of several threads that add and remove. */
static void *come_and_go(void *unused)
{
    opscope_handle handles[5];
    struct living *living;
    (void)unused;
    for (int i = 0; i < ROUNDS / 4; i++) {
        for (int k = 0; k < 5; k++) {
            handles[k] = add_living(k % 2 ? 0.5 : 1.0, &living, true);
        }
        for (int k = 0; k < 5; k++) {
            (void)opscope_disable_callback(handles[(k + 1) % 5]);
            CHECK_EQUAL(opscope_remove_callback(handles[k], k % 2 == 0), OPSCOPE_OK);
        }
    }
    return NULL;
}

static void several_threads_may_add_and_remove_at_once(void)
{
    pthread_t changers[3];
    start_threads();
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(pthread_create(&changers[i], NULL, come_and_go, NULL), 0);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(pthread_join(changers[i], NULL), 0);
    }
    stop_threads();
    CHECK(!opscope_has_callbacks());
}

static void the_recorder_starts_and_stops_while_operators_run(void)
{
    start_threads();
    for (int i = 0; i < ROUNDS / 8; i++) {
        start_recorder("model_id");
        for (int k = 0; k < 20; k++) {
            sched_yield();
        }
        if (i % 3 == 0) {
            CHECK_EQUAL(opscope_recorder_set_sampling(0.1, 0, 0), OPSCOPE_OK);
        }
        CHECK_EQUAL(opscope_recorder_note("round", "x"), OPSCOPE_OK);
        CHECK_EQUAL(opscope_recorder_stop(i % 2 == 0), OPSCOPE_OK);
    }
    stop_threads();
}

static void windows_flip_quickly_while_operators_run(void)
{
    start_threads();
    empty_directory();
    opscope_recorder_options options = {
        .directory = directory, .label_keys = "model_id", .window_ns = 50000, .period_ns = 100000};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    opscope_recorder_status status;
    uint64_t sampling_changes = 0;
    do {
        sched_yield();
        if (++sampling_changes % 64 == 0) {
            CHECK_EQUAL(opscope_recorder_set_sampling(1.0, 0, 0), OPSCOPE_OK);
            CHECK_EQUAL(opscope_recorder_set_sampling(1.0, 30000, 60000), OPSCOPE_OK);
        }
        opscope_recorder_read_status(&status);
    } while (status.window_count < ROUNDS);
    struct segment *segment = stop_and_read();
    struct totals all = segment_sum(segment, 0, ANY, ANY);
    CHECK(all.samples > 0);
    CHECK(all.self_ticks <= all.total_ticks);
    segment_free(segment);
    stop_threads();
}

static void with_all_of_it_nothing_is_lost(void)
{
    uint64_t errors = opscope_callback_errors();
    start_recorder("model_id"); /* before the first operator; stopped after the last */
    ranges_run = 0;
    start_threads();
    pthread_t changer;
    CHECK_EQUAL(pthread_create(&changer, NULL, come_and_go, NULL), 0);
    CHECK_EQUAL(pthread_join(changer, NULL), 0);
    stop_threads();
    start_threads(); /* other threads, with the tables of those that ended */
    for (int i = 0; i < ROUNDS; i++) {
        sched_yield();
    }
    stop_threads();
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, ranges_run);
    CHECK_EQUAL(segment->header->dropped_count, 0);
    CHECK_EQUAL(opscope_callback_errors(), errors);
    segment_free(segment);
}

static int run_task(void *op)
{
    run_ranges(op, 20);
    return OPSCOPE_OK;
}

static void tasks_lose_nothing_either(void)
{
    enum { TASKS = 300 };
    opscope_future *futures[TASKS];
    const opscope_op *op = op_named("task");
    start_recorder("");
    for (int i = 0; i < TASKS; i++) {
        CHECK_EQUAL(opscope_fork(run_task, (void *)(uintptr_t)op, &futures[i]), OPSCOPE_OK);
    }
    for (int i = 0; i < TASKS; i++) {
        int result;
        CHECK_EQUAL(opscope_wait(futures[i], &result), OPSCOPE_OK);
        opscope_future_release(futures[i]);
    }
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "task").samples, 20 * TASKS);
    segment_free(segment);
}

int main(void)
{
    make_directory();
    RUN(a_callback_removed_with_wait_may_be_freed_at_once);
    RUN(a_callback_removed_without_wait_is_dropped_when_it_is_safe);
    RUN(several_threads_may_add_and_remove_at_once);
    RUN(the_recorder_starts_and_stops_while_operators_run);
    RUN(windows_flip_quickly_while_operators_run);
    RUN(with_all_of_it_nothing_is_lost);
    RUN(tasks_lose_nothing_either);
    remove_directory();
    return 0;
}
