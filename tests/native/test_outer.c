/* tests/native/test_outer.c -- outer ranges are followed inside and outside windows: their calls
 * and times are exact, and the ranges inside have their phase. */
#include <math.h>

#include "ranges.h"
#include "read_segment.h"
#include "record/range.h"
#include "recorder/cost.h"
#include "recorder/count.h"
#include "recorder/outer_variance.h"
#include "recorder/state.h"

static const uint64_t NEVER_NS = 1000000000000000; /* the driver's next window is days away */

static void start_windows(void)
{
    empty_directory();
    const opscope_recorder_options options = {
        .directory = directory, .window_ns = 10000000, .period_ns = NEVER_NS};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
}

static const opscope_op *outer_named(const char *name, opscope_phase phase)
{
    return op_of(name, OPSCOPE_USER_SCOPE, phase);
}

static struct totals of_phase(const struct segment *segment, const char *name, opscope_phase phase)
{
    return segment_sum(segment, segment_op(segment, name), (int)phase, ANY);
}

static void outer_ranges_are_counted_exactly_in_and_between_windows(void)
{
    start_windows();
    run_ranges(outer_named("step", OPSCOPE_OPTIMIZER), 100);
    CHECK_EQUAL(opscope_recorder_window_begin(50.0), OPSCOPE_OK);
    run_ranges(outer_named("step", OPSCOPE_OPTIMIZER), 10);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    run_ranges(op_named("operator"), 100);
    struct segment *segment = stop_and_read();
    const struct totals totals = segment_sum_of(segment, "step");
    CHECK_EQUAL(totals.samples, 110);
    CHECK_EQUAL(totals.weight, 110 * ONE);
    CHECK_EQUAL(totals.whole_ticks, totals.total_ticks);
    CHECK_EQUAL(totals.self_ticks, totals.total_ticks);
    CHECK_EQUAL(segment_sum_of(segment, "operator").samples, 0);
    segment_free(segment);
}

static void a_window_opens_into_the_phase_of_what_encloses_it(void)
{
    start_windows();
    opscope_range outer;
    opscope_range_open(&outer, outer_named("load", OPSCOPE_DATA), NULL);
    CHECK_EQUAL(opscope_recorder_window_begin(5.0), OPSCOPE_OK);
    run_ranges(op_named("a"), 3);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    opscope_range_close(&outer);
    CHECK_EQUAL(opscope_recorder_window_begin(5.0), OPSCOPE_OK);
    run_ranges(op_named("a"), 2);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(of_phase(segment, "a", OPSCOPE_DATA).samples, 3);
    CHECK_EQUAL(of_phase(segment, "a", OPSCOPE_FORWARD).samples, 2);
    segment_free(segment);
}

/* Spins for about a microsecond. */
static void spend(void)
{
    for (volatile int i = 0; i < 1000; i++) {
    }
}

static void an_outer_range_has_the_time_that_is_left_by_what_windows_make_of_its_operators(void)
{
    start_windows();
    enum { ROUNDS = 40, WEIGHT = 4 };
    for (int i = 0; i < ROUNDS; i++) { /* a window for one operator in four */
        opscope_range outer, inner;
        opscope_range_open(&outer, outer_named("round", OPSCOPE_OTHER), NULL);
        for (int k = 0; k < WEIGHT; k++) {
            if (k == i % WEIGHT) {
                CHECK_EQUAL(opscope_recorder_window_begin(WEIGHT), OPSCOPE_OK);
            }
            opscope_range_open(&inner, op_named("inner"), NULL);
            spend();
            opscope_range_close(&inner);
            if (k == i % WEIGHT) {
                CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
            }
        }
        opscope_range_close(&outer);
    }
    struct segment *segment = stop_and_read();
    const struct totals outer = segment_sum_of(segment, "round");
    const struct totals inner = segment_sum_of(segment, "inner");
    CHECK_EQUAL(inner.weight, (uint64_t)ROUNDS * WEIGHT * ONE);
    CHECK_EQUAL(outer.whole_ticks, outer.total_ticks);
    /* In total; what is missing in single rounds is subtracted from later ones, and some of the
     * last may remain. */
    CHECK(outer.self_ticks + inner.total_ticks >= outer.total_ticks);
    CHECK(outer.self_ticks < outer.total_ticks);
    segment_free(segment);
}

static void only_what_windows_estimate_makes_the_own_time_of_an_outer_range_uncertain(void)
{
    start_windows();
    const opscope_op *epoch = outer_named("epoch", OPSCOPE_OTHER);
    const opscope_op *step = outer_named("step", OPSCOPE_OPTIMIZER);
    opscope_range outer, inner, lost;
    opscope_range_open(&outer, epoch, NULL);
    for (int i = 0; i < 10; i++) {
        opscope_range_open(&inner, step, NULL);
        CHECK_EQUAL(opscope_recorder_window_begin(5.0), OPSCOPE_OK);
        run_ranges(op_named("a"), 1000); /* a clock may tick in 42 ns only */
        CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
        opscope_range_close(&inner);
    }
    opscope_range_open(&lost, outer_named("lost", OPSCOPE_OTHER), NULL);
    run_ranges(step, 1000);
    (void)opscope__range_lose(&lost);
    opscope_range_close(&lost);
    opscope_range_close(&outer);
    const struct opscope__outer_inside of_epoch =
        opscope__outer_inside(opscope__count_key(epoch, 0));
    const struct opscope__outer_inside of_step = opscope__outer_inside(opscope__count_key(step, 0));
    struct segment *segment = stop_and_read();
    const struct totals epochs = segment_sum_of(segment, "epoch");
    const struct totals steps = segment_sum_of(segment, "step");
    CHECK_EQUAL(of_epoch.exact_ticks, steps.total_ticks);
    CHECK_EQUAL(epochs.self_ticks, epochs.total_ticks - steps.total_ticks);
    CHECK(of_epoch.variance == 0.0);
    CHECK_EQUAL(of_step.exact_ticks, 0);
    CHECK(of_step.variance > 0.0);
    segment_free(segment);
}

static void ranges_of_a_window_that_weigh_nothing_only_enclose(void)
{
    start_windows();
    opscope_range early, late;
    opscope__recorder_window_open();
    opscope_range_open(&early, op_of("early", OPSCOPE_FUNCTION, OPSCOPE_COMM), NULL);
    opscope__recorder_set_weights(2 * ONE, 2 * ONE);
    run_ranges(op_named("a"), 3);
    opscope_range_open(&late, op_named("late"), NULL);
    CHECK(opscope__recorder_has_open_ranges());
    opscope__recorder_set_weights(0, 0);
    run_ranges(op_named("a"), 1000); /* a clock may tick in 42 ns only */
    opscope_range_close(&late);
    CHECK(!opscope__recorder_has_open_ranges());
    opscope_range_close(&early);
    opscope__recorder_window_close(0, 0);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "early").samples, 0);
    CHECK_EQUAL(of_phase(segment, "a", OPSCOPE_COMM).weight, 6 * ONE);
    CHECK_EQUAL(segment_sum_of(segment, "late").weight, 2 * ONE);
    /* Ranges inside it after the end are known, and not part of its own time. */
    CHECK_EQUAL(segment_sum_of(segment, "late").whole_ticks,
                segment_sum_of(segment, "late").total_ticks);
    CHECK(segment_sum_of(segment, "late").self_ticks < segment_sum_of(segment, "late").total_ticks);
    CHECK(segment->header->uncounted_cost_ps >= 4 * segment->header->record_cost_ps);
    segment_free(segment);
}

/* 8 and 2 times what one costs in a loop, in two reports. */
static void an_outer_range_costs_what_was_reported_of_it(void)
{
    start_windows();
    const opscope_op *step = outer_named("step", OPSCOPE_OPTIMIZER);
    const opscope_segment_header *header = opscope__segment_header(&opscope__recorder.segment);
    const uint64_t in_loop = opscope__table_cost_ticks(header, step->id);
    struct opscope__cost cost;
    run_ranges(step, 1000);
    opscope__recorder_read_cost(&cost);
    const uint64_t before = cost.outer_ns;
    for (int i = 0; i < 1000; i++) {
        opscope__cost_outer(8 * in_loop, true);
        opscope__cost_outer(2 * in_loop, false);
    }
    opscope__cost_outer(1000000000, true); /* it was interrupted */
    opscope__recorder_read_cost(&cost);
    CHECK_EQUAL(cost.outer_ns, before);
    CHECK(cost.outer_factor > 9.0 && cost.outer_factor < 11.0);
    CHECK(cost.recording_ns > 9 * before && cost.recording_ns < 11 * before);
    run_ranges(step, 1000); /* which nobody reports */
    opscope__recorder_read_cost(&cost);
    CHECK(cost.outer_factor > 5.0 && cost.outer_factor < 6.0);
    segment_free(stop_and_read());

    start_recorder(""); /* now the cells that count every range are not those of outer ranges */
    run_ranges(op_named("a"), 1000);
    opscope__recorder_read_cost(&cost);
    CHECK(cost.outer_factor < 2.0);
    segment_free(stop_and_read());
}

static void without_outer_ranges_what_encloses_is_unknown(void)
{
    empty_directory();
    const opscope_recorder_options options = {.directory = directory,
                                              .window_ns = 10000000,
                                              .period_ns = NEVER_NS,
                                              .scopes = 1u << OPSCOPE_FUNCTION};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    CHECK_EQUAL(opscope_recorder_window_begin(5.0), OPSCOPE_OK);
    run_ranges(op_named("a"), 3);
    run_ranges(op_of("strong", OPSCOPE_FUNCTION, OPSCOPE_COMM), 2);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(of_phase(segment, "a", OPSCOPE_UNKNOWN).samples, 3);
    CHECK_EQUAL(of_phase(segment, "strong", OPSCOPE_COMM).samples, 2);
    segment_free(segment);
}

static void a_thread_may_say_what_all_that_it_does_is(void)
{
    start_windows();
    CHECK_EQUAL(opscope_recorder_window_begin(5.0), OPSCOPE_OK);
    opscope__hot.phase_bits = OPSCOPE__PHASE_BITS(OPSCOPE_DATA);
    run_ranges(op_named("a"), 3);
    run_ranges(op_of("strong", OPSCOPE_FUNCTION, OPSCOPE_COMM), 2);
    opscope__hot.phase_bits = 0;
    run_ranges(op_named("a"), 1);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(of_phase(segment, "a", OPSCOPE_DATA).samples, 3);
    CHECK_EQUAL(of_phase(segment, "a", OPSCOPE_FORWARD).samples, 1);
    CHECK_EQUAL(of_phase(segment, "strong", OPSCOPE_COMM).samples, 2);
    segment_free(segment);
}

int main(void)
{
    make_directory();
    RUN(outer_ranges_are_counted_exactly_in_and_between_windows);
    RUN(a_window_opens_into_the_phase_of_what_encloses_it);
    RUN(an_outer_range_has_the_time_that_is_left_by_what_windows_make_of_its_operators);
    RUN(only_what_windows_estimate_makes_the_own_time_of_an_outer_range_uncertain);
    RUN(ranges_of_a_window_that_weigh_nothing_only_enclose);
    RUN(an_outer_range_costs_what_was_reported_of_it);
    RUN(without_outer_ranges_what_encloses_is_unknown);
    RUN(a_thread_may_say_what_all_that_it_does_is);
    remove_directory();
    return 0;
}
