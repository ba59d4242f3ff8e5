/* tests/native/test_range_clock.c -- durations in windows leave out the cost of recording; with
 * every range recorded they contain it. */
#include "base/clock.h"
#include "ranges.h"
#include "read_segment.h"
#include "recorder/cost.h"
#include "recorder/state.h"

enum { CHILDREN = 50 };
static const uint64_t NEVER_NS = 1000000000000000; /* the driver's next window is days away */
static const uint64_t EXTRA_PS = 2000000;

static void start(uint64_t window_ns)
{
    empty_directory();
    opscope_recorder_options options = {.directory = directory,
                                        .sampling_prob = 1.0,
                                        .window_ns = window_ns,
                                        .period_ns = NEVER_NS};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    struct opscope__cost cost;
    opscope__recorder_read_cost(&cost); /* as the window thread does */
}

static uint64_t ticks_of(double ns)
{
    opscope__clock clock;
    opscope__clock_start(&clock);
    return (uint64_t)(ns * (double)clock.ticks_per_second / 1e9);
}

static void work(uint64_t ticks)
{
    const uint64_t start = opscope__ticks();
    while (opscope__ticks() - start < ticks) {
    }
}

struct bounds {
    uint64_t least, most; /* ticks that the parent lasts, by the processor's clock */
};

/* A parent with children that do such work, each followed by work of its own. */
static struct bounds run_parent(uint64_t child_ticks, uint64_t own_ticks)
{
    opscope_range parent;
    const uint64_t before = opscope__ticks();
    opscope_range_open(&parent, op_named("parent"), NULL);
    const uint64_t begun = opscope__ticks();
    for (int i = 0; i < CHILDREN; i++) {
        opscope_range child;
        opscope_range_open(&child, op_named("child"), NULL);
        work(child_ticks);
        opscope_range_close(&child);
        work(own_ticks);
    }
    const uint64_t ended = opscope__ticks();
    opscope_range_close(&parent);
    return (struct bounds){.least = ended - begun, .most = opscope__ticks() - before};
}

/* What a range of that operator costs, in ticks, as stated. */
static uint64_t cost_ticks(uint64_t extra_ps)
{
    const opscope_segment_header *header = opscope__segment_header(&opscope__recorder.segment);
    return (uint64_t)((unsigned __int128)(header->record_cost_ps + extra_ps) *
                      header->ticks_per_second / 1000000000000u);
}

static void in_windows_a_parent_lasts_as_long_as_without_recording(void)
{
    start(10000000);
    CHECK_EQUAL(opscope_recorder_window_begin(1.0), OPSCOPE_OK);
    const struct bounds passed = run_parent(0, ticks_of(4000.0));
    const uint64_t cost = CHILDREN * cost_ticks(EXTRA_PS), own = cost_ticks(0);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    struct segment *segment = stop_and_read();
    const struct totals parent = segment_sum_of(segment, "parent");
    const struct totals child = segment_sum_of(segment, "child");
    CHECK(parent.total_ticks + cost + own >= passed.least);
    /* The children do not last as long as the part of their cost that is assigned to them. */
    CHECK(parent.total_ticks + cost * 13 / 16 <= passed.most + CHILDREN);
    CHECK_EQUAL(parent.self_ticks, parent.total_ticks - child.total_ticks);
    segment_free(segment);
}

/* The children are stated to cost more than all the time that passes. */
static void a_cost_that_is_stated_too_high_never_makes_a_parent_shorter_than_its_children(void)
{
    start(10000000);
    CHECK_EQUAL(opscope_recorder_window_begin(1.0), OPSCOPE_OK);
    for (int i = 0; i < 100; i++) {
        (void)run_parent(ticks_of(1000.0), 0);
    }
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    struct segment *segment = stop_and_read();
    const struct totals parent = segment_sum_of(segment, "parent");
    const struct totals child = segment_sum_of(segment, "child");
    CHECK(child.total_ticks > 0);
    CHECK(parent.total_ticks >= child.total_ticks);
    CHECK_EQUAL(parent.self_ticks + child.self_ticks, parent.total_ticks);
    segment_free(segment);
}

/* Each dear range is followed at once by one that lasts longer than what the dear one costs. */
static void a_cost_that_is_stated_too_high_is_not_taken_off_the_next_range(void)
{
    start(10000000);
    const opscope_op *dear = op_named("child"), *next = op_named("next");
    uint64_t least = 0;
    CHECK_EQUAL(opscope_recorder_window_begin(1.0), OPSCOPE_OK);
    for (int i = 0; i < CHILDREN; i++) {
        opscope_range range;
        opscope_range_open(&range, dear, NULL);
        opscope_range_close(&range);
        opscope_range_open(&range, next, NULL);
        const uint64_t begun = opscope__ticks();
        work(ticks_of(3000.0));
        least += opscope__ticks() - begun;
        opscope_range_close(&range);
    }
    const uint64_t own = CHILDREN * cost_ticks(0);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    struct segment *segment = stop_and_read();
    CHECK(segment_sum_of(segment, "next").total_ticks + own >= least);
    segment_free(segment);
}

static void with_every_range_recorded_durations_are_the_time_that_passed(void)
{
    start(0);
    const struct bounds passed = run_parent(0, ticks_of(4000.0));
    struct segment *segment = stop_and_read();
    const struct totals parent = segment_sum_of(segment, "parent");
    CHECK(parent.total_ticks >= passed.least && parent.total_ticks <= passed.most);
    segment_free(segment);
}

int main(void)
{
    make_directory();
    opscope_recorder_extra_cost(op_named("child")->id, EXTRA_PS);
    RUN(in_windows_a_parent_lasts_as_long_as_without_recording);
    RUN(a_cost_that_is_stated_too_high_never_makes_a_parent_shorter_than_its_children);
    RUN(a_cost_that_is_stated_too_high_is_not_taken_off_the_next_range);
    RUN(with_every_range_recorded_durations_are_the_time_that_passed);
    remove_directory();
    return 0;
}
