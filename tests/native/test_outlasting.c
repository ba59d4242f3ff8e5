/* tests/native/test_outlasting.c -- self times of ranges that outlast their window: known where
 * nothing to speak of can have been inside unseen, and nowhere else. */
#include "base/clock.h"
#include "ranges.h"
#include "read_segment.h"
#include "recorder/state.h"

static const uint64_t NEVER_NS = 1000000000000000; /* the driver's next window is days away */
enum { ROUNDS = 50, WEIGHT = 5 };

static uint64_t millisecond; /* in ticks */

static void start_windows(void)
{
    empty_directory();
    const opscope_recorder_options options = {
        .directory = directory, .window_ns = 10000000, .period_ns = NEVER_NS};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    run_ranges(op_named("first"), 1);
    millisecond = opscope__segment_header(&opscope__recorder.segment)->ticks_per_second / 1000;
}

static void begin_window(void)
{
    CHECK_EQUAL(opscope_recorder_window_begin(WEIGHT), OPSCOPE_OK);
}

static void end_window(void)
{
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
}

static void spin(uint64_t ticks)
{
    const uint64_t start = opscope__ticks();
    while (opscope__ticks() - start < ticks) {
    }
}

/* The window ends within the range. */
static void run_outlasting(const opscope_op *op)
{
    opscope_range range;
    begin_window();
    opscope_range_open(&range, op, NULL);
    spin(2 * millisecond);
    end_window();
    spin(millisecond);
    opscope_range_close(&range);
}

static void all_of_a_range_with_nothing_inside_is_its_own(void)
{
    start_windows();
    run_outlasting(op_named("leaf"));
    struct segment *segment = stop_and_read();
    const struct totals leaf = segment_sum_of(segment, "leaf");
    CHECK_EQUAL(leaf.weight, WEIGHT * ONE);
    CHECK(leaf.total_ticks >= WEIGHT * millisecond);
    CHECK_EQUAL(leaf.whole_ticks, leaf.total_ticks);
    CHECK_EQUAL(leaf.self_ticks, leaf.total_ticks);
    segment_free(segment);
}

static void so_it_is_if_further_windows_open_meanwhile(void)
{
    start_windows();
    opscope_range leaf, inner;
    begin_window();
    opscope_range_open(&leaf, op_named("leaf"), NULL);
    const uint64_t start = opscope__ticks();
    opscope_range_open(&inner, op_named("allocation"), NULL);
    spin(1);
    opscope_range_close(&inner);
    spin(2 * millisecond + 100 * (opscope__ticks() - start));
    end_window();
    begin_window();
    end_window();
    spin(millisecond);
    opscope_range_close(&leaf);
    struct segment *segment = stop_and_read();
    const struct totals totals = segment_sum_of(segment, "leaf");
    const uint64_t inside = segment_sum_of(segment, "allocation").total_ticks;
    /* Unless the processor was away within the inner one. */
    CHECK(totals.self_ticks + inside == totals.total_ticks || inside > WEIGHT * millisecond / 8);
    segment_free(segment);
}

/* Operators begin with an allocation of their result, which is one too. */
static void a_little_may_be_inside(void)
{
    start_windows();
    opscope_range outer, inner;
    begin_window();
    opscope_range_open(&outer, op_named("outer"), NULL);
    opscope_range_open(&inner, op_named("inner"), NULL);
    const uint64_t start = opscope__ticks();
    spin(1);
    opscope_range_close(&inner);
    spin(2 * millisecond + 100 * (opscope__ticks() - start));
    end_window();
    spin(10 * millisecond);
    opscope_range_close(&outer);
    struct segment *segment = stop_and_read();
    const struct totals of_outer = segment_sum_of(segment, "outer");
    CHECK_EQUAL(of_outer.whole_ticks, of_outer.total_ticks);
    CHECK_EQUAL(of_outer.self_ticks + segment_sum_of(segment, "inner").total_ticks,
                of_outer.total_ticks);
    segment_free(segment);
}

static void a_range_whose_window_ended_at_once_is_unknown(void)
{
    start_windows();
    opscope_range range;
    begin_window();
    opscope_range_open(&range, op_named("a"), NULL);
    end_window();
    const uint64_t after = opscope__ticks();
    spin(millisecond);
    opscope_range_close(&range);
    struct segment *segment = stop_and_read();
    const struct totals totals = segment_sum_of(segment, "a");
    /* Unless the processor was away between its start and the window's end. */
    CHECK(totals.whole_ticks == 0 ||
          totals.total_ticks / WEIGHT > opscope__ticks() - after + millisecond / 2);
    segment_free(segment);
}

static void a_range_of_an_operator_that_has_others_inside_is_unknown(void)
{
    start_windows();
    opscope_range outer, inner;
    begin_window();
    opscope_range_open(&outer, op_named("composite"), NULL);
    const uint64_t start = opscope__ticks();
    opscope_range_open(&inner, op_named("inner"), NULL);
    spin(opscope__ticks() - start + millisecond);
    opscope_range_close(&inner);
    opscope_range_close(&outer);
    end_window();
    run_outlasting(op_named("composite"));
    struct segment *segment = stop_and_read();
    const struct totals composite = segment_sum_of(segment, "composite");
    CHECK(composite.total_ticks >= composite.whole_ticks + WEIGHT * millisecond);
    CHECK(composite.self_ticks < composite.whole_ticks);
    segment_free(segment);
}

/* A range that calls another one to do the work, which the window's end meets. Whether time passes
 * between the ends of the two, the machine says; in most rounds little does. */
static void what_ends_just_after_the_range_inside_it_is_known(void)
{
    start_windows();
    opscope_range outer, inner;
    for (int i = 0; i < ROUNDS; i++) {
        begin_window();
        opscope_range_open(&outer, op_named("outer"), NULL);
        opscope_range_open(&inner, op_named("inner"), NULL);
        spin(2 * millisecond);
        end_window();
        spin(millisecond);
        opscope_range_close(&inner);
        opscope_range_close(&outer);
    }
    struct segment *segment = stop_and_read();
    const struct totals of_outer = segment_sum_of(segment, "outer");
    const struct totals of_inner = segment_sum_of(segment, "inner");
    CHECK_EQUAL(of_inner.self_ticks, of_inner.total_ticks);
    CHECK(of_outer.whole_ticks > of_outer.total_ticks / ROUNDS / 2);
    CHECK(of_outer.self_ticks < of_outer.whole_ticks);
    segment_free(segment);
}

static void a_range_that_goes_on_after_the_one_inside_it_is_unknown(void)
{
    start_windows();
    opscope_range outer, inner;
    begin_window();
    opscope_range_open(&outer, op_named("outer"), NULL);
    const uint64_t start = opscope__ticks();
    opscope_range_open(&inner, op_named("inner"), NULL);
    end_window();
    spin(millisecond);
    opscope_range_close(&inner);
    spin(opscope__ticks() - start);
    opscope_range_close(&outer);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "outer").samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "outer").whole_ticks, 0);
    CHECK_EQUAL(segment_sum_of(segment, "outer").self_ticks, 0);
    segment_free(segment);
}

/* Of what was inside between the two windows nothing is known, whatever the second one sees. */
static void a_range_that_two_windows_meet_is_unknown_if_others_are_inside(void)
{
    start_windows();
    opscope_range outer, inner;
    begin_window();
    opscope_range_open(&outer, op_named("outer"), NULL);
    run_ranges(op_named("inner"), 1000);
    end_window();
    spin(millisecond);
    begin_window();
    opscope_range_open(&inner, op_named("inner"), NULL);
    end_window();
    spin(100 * millisecond);
    opscope_range_close(&inner);
    opscope_range_close(&outer);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "outer").samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "outer").whole_ticks, 0);
    segment_free(segment);
}

static void where_each_range_is_sampled_by_itself_it_stays_unknown(void)
{
    empty_directory();
    const opscope_recorder_options options = {.directory = directory, .sampling_prob = 1.0};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    CHECK_EQUAL(opscope_recorder_set_sampling(0.5, 0, 0), OPSCOPE_OK);
    run_ranges(op_named("a"), 1000);
    struct segment *segment = stop_and_read();
    CHECK(segment_sum_of(segment, "a").samples > 0);
    CHECK_EQUAL(segment_sum_of(segment, "a").whole_ticks, 0);
    segment_free(segment);
}

int main(void)
{
    make_directory();
    RUN(all_of_a_range_with_nothing_inside_is_its_own);
    RUN(so_it_is_if_further_windows_open_meanwhile);
    RUN(a_little_may_be_inside);
    RUN(a_range_whose_window_ended_at_once_is_unknown);
    RUN(a_range_of_an_operator_that_has_others_inside_is_unknown);
    RUN(what_ends_just_after_the_range_inside_it_is_known);
    RUN(a_range_that_goes_on_after_the_one_inside_it_is_unknown);
    RUN(a_range_that_two_windows_meet_is_unknown_if_others_are_inside);
    RUN(where_each_range_is_sampled_by_itself_it_stays_unknown);
    remove_directory();
    return 0;
}
