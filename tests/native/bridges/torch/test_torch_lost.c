/* tests/native/bridges/torch/test_torch_lost.c -- PyTorch ranges whose end comes on another thread,
 * or never, are left out and counted as dropped; all other numbers stay correct. */
#include "attached.h"
#include "ranges.h"
#include "read_segment.h"

static void a_range_without_an_end_goes_when_one_around_it_ends(void)
{
    start_recorder("");
    struct fake_function outer, lost, inner;
    fake_open(&outer, "outer", NULL, OPSCOPE_USER_SCOPE);
    fake_open(&lost, "lost", NULL, OPSCOPE_USER_SCOPE);
    fake_open(&inner, "inner", NULL, OPSCOPE_USER_SCOPE);
    fake_close(&inner);
    fake_close(&outer);
    run_op("aten::add", "Tensor");
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "outer").samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "inner").samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "lost").samples, 0);
    CHECK_EQUAL(segment_sum_of(segment, "aten::add").samples, 1);
    CHECK_EQUAL(segment->header->dropped_count, 1);
    segment_free(segment);
}

/* Ranges that are not marked as async, such as PyTorch's record_function: they are lost, the loss
 * is counted at once and once, and their thread continues. */
static void ranges_that_end_elsewhere_are_dropped_and_their_thread_goes_on(void)
{
    enum { COUNT = 600 };
    static struct fake_function blocks[COUNT];
    struct calls calls = {0};
    start_recorder("");
    opscope_handle handle = add_global(counting(&calls));
    for (int i = 0; i < COUNT; i++) {
        fake_open(&blocks[i], "block", NULL, OPSCOPE_USER_SCOPE);
        run_op("aten::within", "");
        close_on_another_thread(&blocks[i]);
        opscope_recorder_status status;
        opscope_recorder_read_status(&status);
        CHECK_EQUAL(status.dropped_count, i + 1);
        run_op("aten::add", "Tensor");
    }
    CHECK_EQUAL(calls.starts, 3 * COUNT);
    CHECK_EQUAL(calls.ends, 3 * COUNT); /* theirs too, on the thread that opened them */
    (void)opscope_remove_callback(handle, true);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "aten::within").samples, COUNT);
    CHECK_EQUAL(segment_sum_of(segment, "aten::add").samples, COUNT);
    CHECK_EQUAL(segment_sum_of(segment, "block").samples, 0);
    CHECK_EQUAL(segment->header->dropped_count, COUNT);
    segment_free(segment);
}

static void a_lost_range_is_counted_once_however_it_goes(void)
{
    struct fake_function around, under, over, lost;
    start_recorder("");
    /* It ends elsewhere while other ranges are open around it and inside it. */
    fake_open(&around, "around", NULL, OPSCOPE_USER_SCOPE);
    fake_open(&lost, "lost", NULL, OPSCOPE_USER_SCOPE);
    fake_open(&over, "over", NULL, OPSCOPE_USER_SCOPE);
    close_on_another_thread(&lost);
    run_op("aten::add", "");
    fake_close(&over);
    fake_close(&around);
    /* An enclosing range ends first, then it, elsewhere. */
    fake_open(&around, "around", NULL, OPSCOPE_USER_SCOPE);
    fake_open(&under, "under", NULL, OPSCOPE_USER_SCOPE);
    fake_open(&lost, "lost", NULL, OPSCOPE_USER_SCOPE);
    fake_close(&under);
    close_on_another_thread(&lost);
    fake_close(&around);
    /* So many never end that there is no room for more. */
    enum { NEVER = 300, LIMIT = 256 };
    static struct fake_function never[NEVER];
    for (int i = 0; i < NEVER; i++) {
        fake_open(&never[i], "never", NULL, OPSCOPE_USER_SCOPE);
    }
    run_op("aten::add", "");
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "around").samples, 2);
    CHECK_EQUAL(segment_sum_of(segment, "under").samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "over").samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "lost").samples, 0);
    CHECK_EQUAL(segment_sum_of(segment, "never").samples, 0);
    CHECK_EQUAL(segment_sum_of(segment, "aten::add").samples, 2);
    CHECK_EQUAL(segment->header->dropped_count, 2 + LIMIT);
    segment_free(segment);
    start_recorder(""); /* it ignores ranges that are open at its start */
    for (int i = NEVER; i-- > 0;) {
        fake_close(&never[i]);
    }
    segment = stop_and_read();
    CHECK_EQUAL(segment->header->dropped_count, 0);
    segment_free(segment);
}

static void *open_there(void *fn)
{
    fake_open(fn, "block", NULL, OPSCOPE_USER_SCOPE);
    run_op("aten::within", "");
    return NULL;
}

static void a_thread_that_ends_leaves_its_open_ranges_as_dropped(void)
{
    struct fake_function block;
    start_recorder("");
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, open_there, &block), 0);
    pthread_join(thread, NULL);
    fake_close(&block);
    run_op("aten::add", "");
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "aten::within").samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "block").samples, 0);
    CHECK_EQUAL(segment->header->dropped_count, 1);
    segment_free(segment);
}

/* Self times are as if the lost range had not existed: ranges inside it count as inside the
 * enclosing one. */
static void what_ran_within_a_lost_range_is_no_time_of_the_one_around(void)
{
    struct fake_function around, lost, over;
    start_recorder("");
    for (int is_elsewhere = 0; is_elsewhere < 2; is_elsewhere++) {
        fake_open(&around, "around", NULL, OPSCOPE_USER_SCOPE);
        fake_open(&lost, "lost", NULL, OPSCOPE_USER_SCOPE);
        fake_open(&over, "over", NULL, OPSCOPE_USER_SCOPE);
        for (int i = 0; i < 100000; i++) {
            __asm__ volatile("");
        }
        fake_close(&over);
        if (is_elsewhere) {
            close_on_another_thread(&lost);
            run_op("aten::add", ""); /* removes it */
        }
        fake_close(&around);
    }
    struct segment *segment = stop_and_read();
    const struct totals around_sum = segment_sum_of(segment, "around");
    const struct totals within = segment_sum_of(segment, "over");
    const struct totals add = segment_sum_of(segment, "aten::add");
    CHECK_EQUAL(around_sum.samples, 2);
    CHECK_EQUAL(around_sum.self_ticks,
                around_sum.total_ticks - within.total_ticks - add.total_ticks);
    segment_free(segment);
}

int main(void)
{
    make_directory();
    attach();
    RUN(a_range_without_an_end_goes_when_one_around_it_ends);
    RUN(ranges_that_end_elsewhere_are_dropped_and_their_thread_goes_on);
    RUN(a_lost_range_is_counted_once_however_it_goes);
    RUN(a_thread_that_ends_leaves_its_open_ranges_as_dropped);
    RUN(what_ran_within_a_lost_range_is_no_time_of_the_one_around);
    remove_directory();
    return 0;
}
