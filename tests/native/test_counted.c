/* tests/native/test_counted.c -- ranges are counted without a callback that fires: by countdowns,
 * and by draws of a framework. */
#include <pthread.h>

#include "base/atomics.h"
#include "check.h"
#include "opscope/record.h"
#include "ranges.h"
#include "record/callback.h"
#include "record/demand.h"
#include "record/thread.h"

static const opscope_op *op;
static const opscope_op *block;

static uint64_t counted(void)
{
    bool is_exact = true;
    unsigned busy;
    const uint64_t count = opscope__registry_counted(&is_exact, &busy);
    CHECK(is_exact);
    return count;
}

static opscope_handle add_counting(void)
{
    static const struct opscope__leaf leaf = {.only_counts = true};
    const opscope_callback spec = {.sampling_prob = 1.0 / 128, .scopes = 1u << OPSCOPE_FUNCTION};
    opscope_handle handle;
    CHECK_EQUAL(opscope__add_global_leaf(&spec, &leaf, &handle), OPSCOPE_OK);
    return handle;
}

static void each_operator_is_counted_whatever_is_registered_meanwhile(void)
{
    run_ranges(op, 1); /* this thread is known from here on */
    const uint64_t before = counted();
    run_ranges(op, 1000);
    CHECK_EQUAL(counted(), before + 1000);
    const opscope_handle handle = add_counting();
    CHECK_EQUAL(counted(), before + 1000);
    run_ranges(op, 5000);
    run_ranges(block, 10); /* of another scope */
    CHECK_EQUAL(counted(), before + 6000);
    struct opscope__demand demand;
    opscope__demand_read(&demand);
    CHECK(demand.only_counts && demand.scopes == 1u << OPSCOPE_FUNCTION);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    run_ranges(op, 7);
    CHECK_EQUAL(counted(), before + 6007);
    opscope__hot_invalidate();
    run_ranges(op, 3);
    CHECK_EQUAL(counted(), before + 6010);
}

static int note(const opscope_range *fn, void *user, void **context)
{
    (void)fn;
    (void)context;
    ++*(int *)user;
    return 0;
}

static void a_callback_that_wants_operators_makes_the_count_inexact(void)
{
    int seen = 0;
    bool is_exact = true;
    const uint64_t before = counted();
    const opscope_handle handle =
        add_global((opscope_callback){.start = note, .user = &seen, .sampling_prob = 1.0});
    const opscope_handle counting = add_counting();
    run_ranges(op, 100);
    CHECK_EQUAL(seen, 100);
    unsigned busy;
    (void)opscope__registry_counted(&is_exact, &busy);
    CHECK(!is_exact);
    CHECK_EQUAL(opscope_remove_callback(counting, true), OPSCOPE_OK);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    run_ranges(op, 10);
    CHECK_EQUAL(counted(), before + 10);
}

static void a_framework_s_draws_stand_for_what_was_not_drawn(void)
{
    const opscope_handle counting = add_counting();
    run_ranges(op, 1);
    const uint64_t before = counted();
    CHECK(!opscope__range_was_drawn(OPSCOPE_FUNCTION));
    CHECK(!opscope__range_was_drawn(OPSCOPE_FUNCTION));
    CHECK_EQUAL(counted(), before + 256);
    CHECK_EQUAL(opscope_remove_callback(counting, true), OPSCOPE_OK);
}

/* Its callback is gone, but it has opened no range since. */
static void *wait_with_a_recorded_range(void *arg)
{
    pthread_barrier_t *barrier = arg;
    int seen = 0;
    const opscope_handle handle =
        add_global((opscope_callback){.start = note, .user = &seen, .sampling_prob = 1.0});
    run_ranges(op, 1);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void a_thread_that_does_nothing_leaves_the_count_exact(void)
{
    pthread_t thread;
    pthread_barrier_t barrier;
    CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, 2), 0);
    CHECK_EQUAL(pthread_create(&thread, NULL, wait_with_a_recorded_range, &barrier), 0);
    pthread_barrier_wait(&barrier);
    const uint64_t before = counted();
    run_ranges(op, 10);
    CHECK_EQUAL(counted(), before + 10);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    CHECK_EQUAL(counted(), before + 10);
    pthread_barrier_destroy(&barrier);
}

static void *work(void *arg)
{
    (void)arg;
    run_ranges(op, 1234);
    return NULL;
}

static unsigned busy_threads(void)
{
    bool is_exact = true;
    unsigned busy;
    (void)opscope__registry_counted(&is_exact, &busy);
    return busy;
}

static void *work_and_wait(void *arg)
{
    pthread_barrier_t *barrier = arg;
    for (int i = 0; i < 2; i++) {
        run_ranges(op, 5);
        pthread_barrier_wait(barrier);
        pthread_barrier_wait(barrier);
    }
    return NULL;
}

/* Of those that live. */
static void threads_are_busy_that_ran_ranges_since_the_last_call(void)
{
    pthread_t thread;
    pthread_barrier_t barrier;
    run_ranges(op, 1);
    (void)busy_threads();
    CHECK_EQUAL(busy_threads(), 0);
    run_ranges(op, 1);
    CHECK_EQUAL(busy_threads(), 1);
    CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, 2), 0);
    CHECK_EQUAL(pthread_create(&thread, NULL, work_and_wait, &barrier), 0);
    pthread_barrier_wait(&barrier);
    run_ranges(op, 1);
    CHECK_EQUAL(busy_threads(), 2);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    CHECK_EQUAL(busy_threads(), 1);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    CHECK_EQUAL(busy_threads(), 0);
    pthread_barrier_destroy(&barrier);
}

static void the_counts_of_threads_that_end_stay(void)
{
    const uint64_t before = counted();
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, work, NULL), 0);
    pthread_join(thread, NULL);
    CHECK_EQUAL(counted(), before + 1234);
}

int main(void)
{
    op = op_named("counted");
    block = op_of("block", OPSCOPE_USER_SCOPE, OPSCOPE_OTHER);
    RUN(each_operator_is_counted_whatever_is_registered_meanwhile);
    RUN(a_callback_that_wants_operators_makes_the_count_inexact);
    RUN(a_thread_that_does_nothing_leaves_the_count_exact);
    RUN(a_framework_s_draws_stand_for_what_was_not_drawn);
    RUN(threads_are_busy_that_ran_ranges_since_the_last_call);
    RUN(the_counts_of_threads_that_end_stay);
    return 0;
}
