/* tests/native/test_outer_reported.c -- outer ranges that a bridge reports to the recorder itself:
 * exact as any outer range, with a frame as soon as a window may need it. */
#include <pthread.h>

#include "base/clock.h"
#include "ranges.h"
#include "read_segment.h"
#include "recorder/count.h"
#include "recorder/outer.h"
#include "recorder/outer_variance.h"
#include "recorder/state.h"

static const uint64_t NEVER_NS = 1000000000000000; /* the driver's next window is days away */

struct reported {
    struct opscope__outer_range outer;
    opscope_range range;
};

static const opscope_op *outer_named(const char *name, opscope_phase phase)
{
    return op_of(name, OPSCOPE_USER_SCOPE, phase);
}

/* The thread's first range, and the first after a change of the callbacks, is not for reports; and
 * the first range of a program changes them. */
static void start_windows(void)
{
    empty_directory();
    const opscope_recorder_options options = {
        .directory = directory, .window_ns = 10000000, .period_ns = NEVER_NS};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    run_ranges(outer_named("first", OPSCOPE_OTHER), 2);
}

static void begin(struct reported *reported, const opscope_op *op)
{
    CHECK(opscope__outer_begin(&reported->outer, &reported->range, op, opscope__ticks()));
}

static void end(struct reported *reported)
{
    opscope__outer_end(&reported->outer, false);
}

static uint64_t frame_count(void)
{
    const struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    return (uint64_t)(state->top - &state->frames[1]);
}

static struct totals of_phase(const struct segment *segment, const char *name, opscope_phase phase)
{
    return segment_sum(segment, segment_op(segment, name), (int)phase, ANY);
}

static void reported_ranges_are_counted_exactly_in_and_between_windows(void)
{
    start_windows();
    const opscope_op *step = outer_named("step", OPSCOPE_OPTIMIZER);
    const opscope_op *part = outer_named("part", OPSCOPE_OTHER);
    for (int i = 0; i < 30; i++) {
        struct reported outer, inner;
        if (i % 3 == 1) {
            CHECK_EQUAL(opscope_recorder_window_begin(5.0), OPSCOPE_OK);
            run_ranges(op_named("a"), 1); /* notices it */
        }
        begin(&outer, step);
        CHECK_EQUAL(frame_count(), i % 3 == 1);
        begin(&inner, part);
        end(&inner);
        begin(&inner, part);
        end(&inner);
        end(&outer);
        CHECK_EQUAL(frame_count(), 0);
        if (i % 3 == 1) {
            CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
            run_ranges(part, 1);
        }
    }
    struct segment *segment = stop_and_read();
    const struct totals outer = segment_sum_of(segment, "step");
    const struct totals inner = of_phase(segment, "part", OPSCOPE_OPTIMIZER);
    CHECK_EQUAL(outer.samples, 30);
    CHECK_EQUAL(outer.weight, 30 * ONE);
    CHECK_EQUAL(inner.samples, 60);
    CHECK_EQUAL(of_phase(segment, "part", OPSCOPE_OTHER).samples, 10);
    CHECK_EQUAL(outer.whole_ticks, outer.total_ticks);
    CHECK_EQUAL(outer.self_ticks + inner.total_ticks, outer.total_ticks);
    CHECK_EQUAL(segment->header->dropped_count, 0);
    segment_free(segment);
}

static void only_what_windows_estimate_makes_their_own_time_uncertain(void)
{
    start_windows();
    const opscope_op *epoch = outer_named("epoch", OPSCOPE_OTHER);
    const opscope_op *step = outer_named("step", OPSCOPE_OPTIMIZER);
    struct reported outer, inner, lost;
    for (int i = 0; i < 9; i++) {
        begin(&outer, epoch);
        begin(&inner, step);
        end(&inner);
        if (i % 3 != 0) { /* else all of it is between windows */
            CHECK_EQUAL(opscope_recorder_window_begin(5.0), OPSCOPE_OK);
            run_ranges(op_named("noticed"), 1);
            begin(&inner, step);
            run_ranges(op_named("inside"), 1000); /* a clock may tick in 42 ns only */
            end(&inner);
            CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
            run_ranges(step, 1); /* notices it, so the next is without a frame */
        }
        begin(&lost, outer_named("lost", OPSCOPE_OTHER));
        begin(&inner, step);
        end(&inner);
        opscope__outer_lose(&lost.outer);
        end(&outer);
    }
    const struct opscope__outer_inside of_epoch =
        opscope__outer_inside(opscope__count_key(epoch, 0));
    const struct opscope__outer_inside of_step = opscope__outer_inside(opscope__count_key(step, 0));
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(of_epoch.exact_ticks, segment_sum_of(segment, "step").total_ticks);
    /* The square of a sum is at least the sum of the squares. */
    const double in_epoch = (double)segment_sum_of(segment, "noticed").total_ticks;
    const double in_step = (double)segment_sum_of(segment, "inside").total_ticks;
    CHECK(of_epoch.variance <= in_epoch * in_epoch);
    CHECK(of_step.variance <= in_step * in_step);
    CHECK_EQUAL(of_step.exact_ticks, 0);
    CHECK(of_step.variance > 0.0);
    segment_free(segment);
}

static void a_window_opens_into_reported_ranges(void)
{
    start_windows();
    struct reported load, part, later;
    begin(&load, outer_named("load", OPSCOPE_DATA));
    begin(&later, outer_named("before", OPSCOPE_OTHER));
    end(&later);
    begin(&part, outer_named("part", OPSCOPE_OTHER));
    CHECK_EQUAL(frame_count(), 0);
    CHECK_EQUAL(opscope_recorder_window_begin(5.0), OPSCOPE_OK);
    run_ranges(op_named("a"), 3);
    CHECK_EQUAL(frame_count(), 2);
    begin(&later, outer_named("in", OPSCOPE_OTHER));
    run_ranges(op_named("b"), 2);
    end(&later);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    end(&part);
    run_ranges(outer_named("first", OPSCOPE_OTHER), 1);
    begin(&later, outer_named("after", OPSCOPE_OTHER)); /* inside a frame, without its own */
    CHECK_EQUAL(frame_count(), 1);
    end(&later);
    end(&load);
    CHECK_EQUAL(frame_count(), 0);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(of_phase(segment, "a", OPSCOPE_DATA).samples, 3);
    CHECK_EQUAL(of_phase(segment, "b", OPSCOPE_DATA).samples, 2);
    const char *inner[] = {"before", "part", "after"};
    uint64_t inner_ticks = of_phase(segment, "first", OPSCOPE_DATA).total_ticks;
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(of_phase(segment, inner[i], OPSCOPE_DATA).samples, 1);
        inner_ticks += segment_sum_of(segment, inner[i]).total_ticks;
    }
    const struct totals outer = segment_sum_of(segment, "load");
    CHECK_EQUAL(outer.samples, 1);
    CHECK_EQUAL(outer.self_ticks, outer.total_ticks - inner_ticks);
    CHECK_EQUAL(segment->header->dropped_count, 0);
    segment_free(segment);
}

static void other_outer_ranges_begin_inside_reported_ones(void)
{
    start_windows();
    struct reported reported;
    begin(&reported, outer_named("load", OPSCOPE_DATA));
    run_ranges(outer_named("inner", OPSCOPE_OTHER), 2);
    end(&reported);
    struct segment *segment = stop_and_read();
    const struct totals inner = of_phase(segment, "inner", OPSCOPE_DATA);
    const struct totals outer = segment_sum_of(segment, "load");
    CHECK_EQUAL(inner.samples, 2);
    CHECK_EQUAL(outer.self_ticks + inner.total_ticks, outer.total_ticks);
    segment_free(segment);
}

static void a_range_that_is_lost_leaves_no_trace_but_its_callers_count(void)
{
    for (int has_frame = 0; has_frame < 2; has_frame++) {
        start_windows();
        struct reported outer, lost, inner;
        begin(&outer, outer_named("outer", OPSCOPE_OTHER));
        begin(&lost, outer_named("lost", OPSCOPE_OTHER));
        begin(&inner, outer_named("inner", OPSCOPE_OTHER));
        end(&inner);
        if (has_frame) {
            CHECK_EQUAL(opscope_recorder_window_begin(5.0), OPSCOPE_OK);
            run_ranges(op_named("a"), 1);
            CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
        }
        opscope__outer_lose(&lost.outer);
        end(&outer);
        CHECK_EQUAL(frame_count(), 0);
        struct segment *segment = stop_and_read();
        const struct totals totals = segment_sum_of(segment, "outer");
        CHECK_EQUAL(totals.samples, 1);
        CHECK_EQUAL(segment_sum_of(segment, "lost").samples, 0);
        CHECK(totals.self_ticks <=
              totals.total_ticks - segment_sum_of(segment, "inner").total_ticks);
        CHECK_EQUAL(segment->header->dropped_count, 0);
        segment_free(segment);
    }
}

static void ranges_that_have_not_ended_inside_one_are_dropped(void)
{
    for (int has_frame = 0; has_frame < 2; has_frame++) {
        start_windows();
        struct reported outer, inner, innermost;
        begin(&outer, outer_named("outer", OPSCOPE_OTHER));
        begin(&inner, outer_named("inner", OPSCOPE_OTHER));
        begin(&innermost, outer_named("inner", OPSCOPE_OTHER));
        if (has_frame) {
            CHECK_EQUAL(opscope_recorder_window_begin(5.0), OPSCOPE_OK);
            run_ranges(op_named("a"), 1);
            CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
        }
        end(&outer);
        end(&innermost);
        end(&inner);
        CHECK_EQUAL(frame_count(), 0);
        struct segment *segment = stop_and_read();
        CHECK_EQUAL(segment_sum_of(segment, "outer").samples, 1);
        CHECK_EQUAL(segment_sum_of(segment, "inner").samples, 0);
        CHECK_EQUAL(segment->header->dropped_count, 2);
        segment_free(segment);
    }
}

static void a_range_that_fails_is_an_error(void)
{
    start_windows();
    struct reported reported;
    begin(&reported, outer_named("step", OPSCOPE_OPTIMIZER));
    opscope__outer_end(&reported.outer, true);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "step").samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "step").error_weight, ONE);
    segment_free(segment);
}

static void ranges_that_other_callbacks_want_are_not_taken(void)
{
    start_windows();
    const opscope_op *step = outer_named("step", OPSCOPE_OPTIMIZER);
    struct calls calls = {0};
    struct reported reported;
    const opscope_handle other = add_global((opscope_callback){.start = count_start,
                                                               .end = count_end,
                                                               .user = &calls,
                                                               .sampling_prob = 1.0,
                                                               .scopes = 1u << OPSCOPE_USER_SCOPE});
    for (int i = 0; i < 3; i++) {
        CHECK(!opscope__outer_begin(&reported.outer, &reported.range, step, opscope__ticks()));
        run_ranges(step, 1);
    }
    CHECK_EQUAL(calls.starts, 3);
    CHECK_EQUAL(opscope_remove_callback(other, true), OPSCOPE_OK);
    /* Its removal is not noticed yet. */
    CHECK(!opscope__outer_begin(&reported.outer, &reported.range, step, opscope__ticks()));
    run_ranges(step, 1);
    begin(&reported, step);
    end(&reported);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "step").samples, 5);
    segment_free(segment);
    CHECK(!opscope__outer_begin(&reported.outer, &reported.range, step, opscope__ticks()));
}

static void a_range_of_an_earlier_segment_is_in_no_later_one(void)
{
    for (int has_frame = 0; has_frame < 2; has_frame++) {
        start_windows();
        struct reported early, late;
        begin(&early, outer_named("early", OPSCOPE_OTHER));
        if (has_frame) {
            run_ranges(outer_named("first", OPSCOPE_OTHER), 1);
        }
        segment_free(stop_and_read());
        start_windows();
        begin(&late, outer_named("late", OPSCOPE_OTHER));
        end(&late);
        end(&early);
        CHECK_EQUAL(frame_count(), 0);
        struct segment *segment = stop_and_read();
        CHECK_EQUAL(segment_sum_of(segment, "late").samples, 1);
        CHECK_EQUAL(segment_sum_of(segment, "early").samples, 0);
        segment_free(segment);
    }
}

static void a_thread_that_does_not_record_reports_in_vain(void)
{
    start_windows();
    const opscope_op *step = outer_named("step", OPSCOPE_OPTIMIZER);
    struct reported reported;
    begin(&reported, step);
    end(&reported);
    (void)opscope_recording_set(false);
    run_ranges(step, 1); /* notices it */
    CHECK(!opscope__outer_begin(&reported.outer, &reported.range, step, opscope__ticks()));
    (void)opscope_recording_set(true);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "step").samples, 1);
    segment_free(segment);
}

static void *report_many(void *op)
{
    run_ranges(op, 2);
    for (int i = 0; i < 20000; i++) {
        struct reported reported;
        if (opscope__outer_begin(&reported.outer, &reported.range, op, opscope__ticks())) {
            run_ranges(op_named("a"), 1);
            end(&reported);
        } else {
            run_ranges(op, 1);
        }
    }
    return NULL;
}

/* Windows open and close meanwhile: for the sanitizers, too. */
static void threads_report_while_windows_come_and_go(void)
{
    empty_directory();
    const opscope_recorder_options options = {
        .directory = directory, .window_ns = 100000, .period_ns = 400000};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    const opscope_op *step = outer_named("step", OPSCOPE_OPTIMIZER);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, report_many, (void *)(uintptr_t)step), 0);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "step").samples, 3 * 20002);
    CHECK_EQUAL(segment->header->dropped_count, 0);
    const struct totals inner = segment_sum_of(segment, "a");
    if (inner.samples != 0) { /* a window met some */
        CHECK_EQUAL(of_phase(segment, "a", OPSCOPE_OPTIMIZER).samples, inner.samples);
    }
    segment_free(segment);
}

int main(void)
{
    make_directory();
    RUN(reported_ranges_are_counted_exactly_in_and_between_windows);
    RUN(only_what_windows_estimate_makes_their_own_time_uncertain);
    RUN(a_window_opens_into_reported_ranges);
    RUN(other_outer_ranges_begin_inside_reported_ones);
    RUN(a_range_that_is_lost_leaves_no_trace_but_its_callers_count);
    RUN(ranges_that_have_not_ended_inside_one_are_dropped);
    RUN(a_range_that_fails_is_an_error);
    RUN(ranges_that_other_callbacks_want_are_not_taken);
    RUN(a_range_of_an_earlier_segment_is_in_no_later_one);
    RUN(a_thread_that_does_not_record_reports_in_vain);
    RUN(threads_report_while_windows_come_and_go);
    remove_directory();
    return 0;
}
