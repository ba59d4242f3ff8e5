/* tests/native/test_cost_threads.c -- the cost of recording on threads that live for a window or
 * less, which is taken off their CPU time, and not off that of others. */
#include <math.h>
#include <pthread.h>

#include "ranges.h"
#include "read_segment.h"
#include "record/thread.h"
#include "recorder/cost.h"
#include "recorder/state.h"

static void *run_five(void *op)
{
    run_ranges(op, 5);
    return NULL;
}

static uint32_t step; /* of run_in_both */

static void await(uint32_t wanted)
{
    while (opscope__load_acquire(&step) != wanted) {
    }
}

/* In one window, and in the next. */
static void *run_in_both(void *op)
{
    run_ranges(op, 5);
    opscope__store_release(&step, 1); /* partner: await */
    await(2);
    run_ranges(op, 5);
    return NULL;
}

static void begin_window(struct opscope__cost *cost)
{
    opscope__registry_window_opens();
    CHECK_EQUAL(opscope_recorder_window_begin(8.0), OPSCOPE_OK);
    opscope__recorder_read_cost(cost);
}

static void end_window(void)
{
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    opscope__registry_window_closes();
}

/* The cost, in cells, of so many ranges, and of so many on new threads. Both sums are rounded
 * down. */
static void check_cells(const struct opscope__cost *before, uint64_t count, uint64_t new_count)
{
    struct opscope__cost now;
    opscope__recorder_read_cost(&now);
    const double range_ns =
        (double)opscope__segment_header(&opscope__recorder.segment)->record_cost_ps / 1e3;
    CHECK(fabs((double)(now.cells_ns - before->cells_ns) - (double)count * range_ns) <= 1.0);
    CHECK(fabs((double)(now.cells_new_ns - before->cells_new_ns) - (double)new_count * range_ns) <=
          1.0);
}

static void the_cost_of_new_threads_is_known(void)
{
    const opscope_op *op = op_named("of_threads");
    pthread_t one, other, staying;
    struct opscope__cost before;
    empty_directory();
    const opscope_recorder_options options = {
        .directory = directory, .window_ns = 10000000, .period_ns = 1000000000000000};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    begin_window(&before);
    run_ranges(op, 3);
    check_cells(&before, 3, 0);
    end_window();
    begin_window(&before);
    run_ranges(op, 3);
    CHECK_EQUAL(pthread_create(&one, NULL, run_five, (void *)(uintptr_t)op), 0);
    pthread_join(one, NULL);
    check_cells(&before, 8, 5);
    CHECK_EQUAL(pthread_create(&other, NULL, run_five, (void *)(uintptr_t)op), 0); /* same table */
    pthread_join(other, NULL);
    CHECK_EQUAL(opscope__recorder.table_count, 2);
    check_cells(&before, 13, 10);
    CHECK_EQUAL(pthread_create(&staying, NULL, run_in_both, (void *)(uintptr_t)op), 0);
    await(1);
    check_cells(&before, 18, 15);
    end_window();
    begin_window(&before);            /* the thread meets its second window, and is known now */
    opscope__store_release(&step, 2); /* partner: await */
    pthread_join(staying, NULL);
    check_cells(&before, 5, 0);
    struct opscope__cost now;
    opscope__recorder_read_cost(&now);
    CHECK(now.begun_new_ns > 0 && now.begun_new_ns < now.begun_ns);
    end_window();
    begin_window(&before); /* no thread has its table any more */
    CHECK_EQUAL(pthread_create(&one, NULL, run_five, (void *)(uintptr_t)op), 0);
    pthread_join(one, NULL);
    CHECK_EQUAL(opscope__recorder.table_count, 2);
    run_ranges(op, 3);
    check_cells(&before, 8, 5);
    end_window();
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

/* A bridge prepares a thread before the thread's first range, which registers it. */
static void *prepare(void *unused)
{
    opscope__cost_setup_end(opscope__cost_setup_start());
    return unused;
}

static void a_thread_is_prepared_before_its_first_range(void)
{
    pthread_t thread;
    empty_directory();
    const opscope_recorder_options options = {.directory = directory, .sampling_prob = 1.0};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    run_ranges(op_named("of_threads"), 1);
    struct opscope__cost before, now;
    opscope__recorder_read_cost(&before);
    CHECK_EQUAL(pthread_create(&thread, NULL, prepare, NULL), 0);
    pthread_join(thread, NULL);
    opscope__recorder_read_cost(&now);
    CHECK(now.begun_ns > before.begun_ns);
    CHECK_EQUAL(now.begun_new_ns, before.begun_new_ns);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

int main(void)
{
    make_directory();
    RUN(a_thread_is_prepared_before_its_first_range);
    RUN(the_cost_of_new_threads_is_known);
    remove_directory();
    return 0;
}
