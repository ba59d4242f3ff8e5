/* tests/native/test_allocation.c -- bytes are added to the operator that allocates them. */
#include <pthread.h>

#include "opscope/memory.h"
#include "ranges.h"
#include "read_segment.h"

static void allocate_within(const char *name, uint64_t bytes)
{
    opscope_range range;
    opscope_range_open(&range, op_named(name), NULL);
    opscope_note_allocation(bytes);
    opscope_range_close(&range);
}

static void *allocate_on_a_thread(void *unused)
{
    (void)unused;
    opscope_note_allocation(1 << 20); /* a thread without a range so far */
    for (int i = 0; i < 1000; i++) {
        allocate_within("threads", 3);
    }
    return NULL;
}

static void bytes_belong_to_the_innermost_range(void)
{
    start_recorder("");
    opscope_note_allocation(1000); /* outside of ranges: in no sum */
    opscope_range outer;
    opscope_range_open(&outer, op_named("outer"), NULL);
    opscope_note_allocation(1);
    allocate_within("inner", 10);
    opscope_note_allocation(100);
    allocate_within("inner", 20);
    opscope_range_close(&outer);
    opscope_note_allocation(1000);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "outer").bytes, 101);
    CHECK_EQUAL(segment_sum_of(segment, "inner").bytes, 30);
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).bytes, 131);
    CHECK_EQUAL(segment_sum_of(segment, "inner").samples, 2);
    segment_free(segment);
}

static void sums_over_threads_are_exact(void)
{
    start_recorder("");
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, allocate_on_a_thread, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).bytes, 4 * 3000);
    segment_free(segment);
}

static void start_windows(void)
{
    empty_directory();
    opscope_recorder_options options = {
        .directory = directory, .window_ns = 10000000, .period_ns = 1000000000000000};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
}

static void in_a_window_bytes_have_its_weight_whatever_their_size(void)
{
    start_windows();
    allocate_within("a", 1);
    CHECK_EQUAL(opscope_recorder_window_begin(2.5), OPSCOPE_OK);
    for (int i = 0; i < 1000; i++) {
        allocate_within("a", 1); /* of 2.5 bytes each; no half may be lost */
    }
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    allocate_within("a", 1);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "a").bytes, 2500);
    segment_free(segment);
}

static void a_range_that_outlasts_its_window_has_what_it_allocated_within(void)
{
    start_windows();
    opscope_range before, over;
    opscope_range_open(&before, op_named("before"), NULL);
    CHECK_EQUAL(opscope_recorder_window_begin(3.0), OPSCOPE_OK);
    opscope_note_allocation(1);
    opscope_range_open(&over, op_named("over"), NULL);
    opscope_note_allocation(10);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    allocate_within("unseen", 100); /* must not be counted for `over` */
    opscope_note_allocation(1000);
    opscope_range_close(&over);
    opscope_range_close(&before);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "over").bytes, 30);
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).bytes, 30);
    segment_free(segment);
}

static void where_each_range_is_sampled_by_itself_bytes_are_not_known(void)
{
    start_recorder("");
    CHECK_EQUAL(opscope_recorder_set_sampling(0.5, 0, 0), OPSCOPE_OK);
    for (int i = 0; i < 1000; i++) {
        allocate_within("a", 1);
    }
    struct segment *segment = stop_and_read();
    CHECK(segment_sum_of(segment, "a").samples > 0);
    CHECK_EQUAL(segment_sum_of(segment, "a").bytes, 0);
    segment_free(segment);
}

static int allocate_at_start(const opscope_range *fn, void *user, void **context)
{
    (void)fn;
    (void)user;
    (void)context;
    opscope_note_allocation(1000);
    return OPSCOPE_OK;
}

static void what_a_callback_allocates_is_not_the_operators(void)
{
    start_recorder("");
    opscope_handle handle =
        add_global((opscope_callback){.start = allocate_at_start, .sampling_prob = 1.0});
    allocate_within("a", 7);
    CHECK_EQUAL(opscope_remove_callback(handle, false), OPSCOPE_OK);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "a").bytes, 7);
    segment_free(segment);
}

static void a_forked_child_counts_anew(void)
{
    start_recorder("");
    opscope_range outer;
    opscope_range_open(&outer, op_named("outer"), NULL);
    opscope_note_allocation(1);
    pid_t child = fork();
    if (child == 0) {
        opscope_note_allocation(100); /* the parent's range: not counted in this process */
        allocate_within("child", 10);
        struct segment *segment = stop_and_read();
        CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).bytes, 10);
        _exit(0);
    }
    CHECK(check_child(child));
    opscope_range_close(&outer);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "outer").bytes, 1);
    segment_free(segment);
}

static void nothing_happens_without_a_recorder(void)
{
    allocate_within("a", 1);
    opscope_note_allocation(1);
}

int main(void)
{
    make_directory();
    RUN(nothing_happens_without_a_recorder);
    RUN(bytes_belong_to_the_innermost_range);
    RUN(sums_over_threads_are_exact);
    RUN(in_a_window_bytes_have_its_weight_whatever_their_size);
    RUN(a_range_that_outlasts_its_window_has_what_it_allocated_within);
    RUN(where_each_range_is_sampled_by_itself_bytes_are_not_known);
    RUN(what_a_callback_allocates_is_not_the_operators);
    RUN(a_forked_child_counts_anew);
    RUN(nothing_happens_without_a_recorder);
    remove_directory();
    return 0;
}
