/* tests/native/bridges/torch/test_torch_count.c -- ranges of the fake PyTorch are counted without a
 * callback while they are only counted, and in windows. */
#include "attached.h"
#include "bridges/torch/count.h"
#include "read_segment.h"
#include "record/thread.h"
#include "recorder/cost.h"
#include "recorder/state.h"

/* How many of ten operators, and of ten ranges of other scopes, are counted. */
static uint64_t counted_of_ten(void)
{
    const uint64_t before = opscope__registry_counted_by_bridges();
    for (int i = 0; i < 10; i++) {
        struct fake_function fn;
        run_op("aten::add", "Tensor");
        fake_open(&fn, "AddBackward0", NULL, OPSCOPE_BACKWARD_FUNCTION);
        fake_close(&fn);
    }
    return opscope__registry_counted_by_bridges() - before;
}

/* While no window is open and nothing is only counted: in a slot that is read-only, our function
 * stays. */
#if defined(FAKE_OLD_STRINGS)
enum { BETWEEN = 10 };
#else
enum { BETWEEN = 0 };
#endif

static void start_windows(void)
{
    empty_directory();
    const opscope_recorder_options options = {
        .directory = directory, .window_ns = 10000000, .period_ns = 1000000000000000};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    CHECK_EQUAL(opscope_recorder_window_begin(8.0), OPSCOPE_OK);
    run_op("aten::add", "Tensor"); /* this thread is known from here on */
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
}

static void ranges_are_counted_without_a_callback(void)
{
    CHECK(opscope__torch_counts());
    const uint32_t callbacks = fake_callback_count();
    CHECK_EQUAL(counted_of_ten(), BETWEEN);
    opscope__recorder_count_few(true);
    CHECK_EQUAL(fake_callback_count(), callbacks);
    CHECK_EQUAL(counted_of_ten(), 10);
    opscope__recorder_count_few(false);
    CHECK_EQUAL(counted_of_ten(), BETWEEN);
}

static void recorded_ranges_are_counted_too(void)
{
    CHECK_EQUAL(opscope_recorder_window_begin(8.0), OPSCOPE_OK);
    CHECK_EQUAL(counted_of_ten(), 10);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    CHECK_EQUAL(counted_of_ten(), BETWEEN);
}

/* The recorder's own counting has no part in it: the two counts are added. */
static void their_cost_is_compared_and_their_number_is_not_counted_twice(void)
{
    struct opscope__cost before, after;
    opscope__recorder_read_cost(&before);
    CHECK_EQUAL(opscope_recorder_window_begin(8.0), OPSCOPE_OK);
    (void)counted_of_ten();
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    opscope__recorder_read_cost(&after);
    CHECK_EQUAL(after.counted_count, before.counted_count);
    CHECK(after.counted_ns > before.counted_ns);
    CHECK_EQUAL(after.counted_ns - before.counted_ns, after.sampled_ns - before.sampled_ns);
    CHECK_EQUAL(after.few_ns, before.few_ns);
}

static void *count_there(void *counted)
{
    run_op("aten::add", "Tensor"); /* it is known from here on */
    *(uint64_t *)counted = counted_of_ten();
    return NULL;
}

static void the_counts_of_threads_that_end_stay(void)
{
    pthread_t thread;
    uint64_t there = 0;
    CHECK_EQUAL(opscope_recorder_window_begin(8.0), OPSCOPE_OK);
    const uint64_t before = opscope__registry_counted_by_bridges();
    CHECK_EQUAL(pthread_create(&thread, NULL, count_there, &there), 0);
    pthread_join(thread, NULL);
    CHECK_EQUAL(there, 10);
    CHECK(opscope__registry_counted_by_bridges() >= before + 10);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
}

static void *count_from_the_first(void *counted)
{
    *(uint64_t *)counted = counted_of_ten();
    return NULL;
}

/* A thread for each request lives too short to be known before. */
static void a_thread_s_first_range_is_counted(void)
{
    pthread_t thread;
    uint64_t there = 0;
    opscope__recorder_count_few(true);
    CHECK_EQUAL(pthread_create(&thread, NULL, count_from_the_first, &there), 0);
    pthread_join(thread, NULL);
    CHECK_EQUAL(there, 10);
    opscope__recorder_count_few(false);
}

static void a_detached_bridge_counts_nothing(void)
{
    opscope__recorder_count_few(true);
    opscope_torch_detach();
    CHECK_EQUAL(counted_of_ten(), 0);
    attach();
    CHECK_EQUAL(counted_of_ten(), 10);
    opscope__recorder_count_few(false);
}

int main(void)
{
    make_directory();
    attach();
    start_windows();
    RUN(ranges_are_counted_without_a_callback);
    RUN(recorded_ranges_are_counted_too);
    RUN(their_cost_is_compared_and_their_number_is_not_counted_twice);
    RUN(the_counts_of_threads_that_end_stay);
    RUN(a_thread_s_first_range_is_counted);
    RUN(a_detached_bridge_counts_nothing);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
    empty_directory();
    remove_directory();
    return 0;
}
