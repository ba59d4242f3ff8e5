/* tests/native/test_governor.c -- the governor keeps a made-up program to its budget, by a clock
 * that the test turns. */
#include <math.h>

#include "check.h"
#include "record/governor.h"

static const uint64_t SECOND_NS = 1000000000, COST_PS = 50000, BUDGET_PPB = 5000000;

/* A program on one processor, seen through a recorder. */
struct program {
    double ranges_per_second;
    struct opscope__governor_reading now;
    opscope__governor governor;
    struct opscope__sampling asked;
};

static struct program begin(struct opscope__sampling asked, uint64_t budget_ppb, double rate)
{
    struct program program = {.ranges_per_second = rate, .asked = asked};
    opscope__governor_start(&program.governor, budget_ppb, &program.now);
    return program;
}

static struct opscope__sampling sampling_of(const struct program *program)
{
    return opscope__governor_scaled(&program->governor, &program->asked);
}

/* Runs for so long with `cpu` seconds of processor time each second. */
static bool run_with(struct program *program, double seconds, double cpu)
{
    const struct opscope__sampling sampling = sampling_of(program);
    double share = sampling.window_ns != 0 ? (double)sampling.window_ns / (double)sampling.period_ns
                                           : sampling.prob;
    program->now.wall_ns += (uint64_t)(seconds * 1e9);
    program->now.cpu_ns += (uint64_t)(seconds * cpu * 1e9);
    program->now.recording_ns +=
        (uint64_t)(seconds * program->ranges_per_second * share) * COST_PS / 1000;
    program->now.on_ns += sampling.window_ns != 0 ? (uint64_t)(seconds * 1e9 * share) : 0;
    return opscope__governor_look(&program->governor, &program->asked, &program->now);
}

static bool run(struct program *program)
{
    const struct opscope__sampling sampling = sampling_of(program);
    return run_with(program, (double)opscope__governor_interval_ns(&sampling) / 1e9, 1.0);
}

static const struct opscope__sampling half = {.prob = 0.5};
static const struct opscope__sampling windows = {1.0, 2000000, 250000000};

static void a_program_over_the_budget_is_below_it_after_one_interval(void)
{
    struct program program = begin(half, BUDGET_PPB, 4e6);
    CHECK(run(&program)); /* 4e6 ranges * 0.5 * 50 ns: 10 % */
    CHECK_EQUAL(program.governor.overhead_ppb, 100000000);
    CHECK_EQUAL(program.governor.adaptation_count, 1);
    CHECK(fabs(sampling_of(&program).prob - 0.5 * 0.75 * 0.005 / 0.1) < 1e-9);
    CHECK(!run(&program)); /* and stays there */
    CHECK(!run(&program));
    CHECK(program.governor.overhead_ppb < BUDGET_PPB);
    CHECK(program.governor.overhead_ppb > BUDGET_PPB / 2);
    CHECK_EQUAL(program.governor.adaptation_count, 1);
}

static void windows_are_spread_out_and_come_back(void)
{
    struct program program = begin(windows, BUDGET_PPB, 50e6);
    CHECK(run(&program)); /* 250 % while on, 0.8 % of the time: 2 % */
    struct opscope__sampling sampling = sampling_of(&program);
    CHECK_EQUAL(sampling.window_ns, windows.window_ns);
    CHECK(sampling.period_ns > 1300000000 && sampling.period_ns < 1350000000);
    CHECK(!run(&program));
    program.ranges_per_second = 1e5; /* it does other things now */
    int intervals = 0;
    while (run(&program)) {
        intervals++;
    }
    CHECK(intervals > 1 && intervals < 10);
    sampling = sampling_of(&program);
    CHECK_EQUAL(sampling.period_ns, windows.period_ns);
    CHECK(program.governor.scale == 1.0);
}

static void it_never_samples_more_than_was_asked_for(void)
{
    struct program program = begin(half, BUDGET_PPB, 10.0);
    for (int i = 0; i < 20; i++) {
        CHECK(!run(&program));
        CHECK(sampling_of(&program).prob == 0.5);
    }
    CHECK_EQUAL(program.governor.adaptation_count, 0);
}

static void there_is_always_something_to_see(void)
{
    struct program program = begin(half, 1, 1e7);
    struct program spread = begin(windows, 1, 1e7);
    for (int i = 0; i < 10; i++) {
        (void)run(&program);
        (void)run(&spread);
    }
    CHECK(fabs(sampling_of(&program).prob - 1e-5) < 1e-12);
    uint64_t period_ns = sampling_of(&spread).period_ns;
    CHECK(period_ns > 59 * SECOND_NS && period_ns < 61 * SECOND_NS);
}

static void sampling_below_the_floor_is_left_as_asked_for(void)
{
    struct program program = begin((struct opscope__sampling){.prob = 1e-7}, 1, 1e9);
    CHECK(!run(&program));
    CHECK(sampling_of(&program).prob == 1e-7);
    struct program spread =
        begin((struct opscope__sampling){1.0, 2000000, 100 * SECOND_NS}, 1, 1e9);
    CHECK(!run(&spread));
    CHECK_EQUAL(sampling_of(&spread).period_ns, 100 * SECOND_NS);
}

static void without_a_budget_it_measures_and_changes_nothing(void)
{
    struct program program = begin(half, 0, 4e6);
    CHECK(!run(&program));
    CHECK_EQUAL(program.governor.overhead_ppb, 100000000);
    CHECK(sampling_of(&program).prob == 0.5);
}

static void a_nearly_idle_program_is_judged_once_it_has_done_something(void)
{
    struct program program = begin(half, BUDGET_PPB, 4e6);
    CHECK(!run_with(&program, 2.0, 0.001)); /* 2 ms of processor time */
    CHECK_EQUAL(program.governor.overhead_ppb, 0);
    CHECK(!run_with(&program, 2.0, 0.001));
    CHECK(run_with(&program, 2.0, 1.0)); /* all of it counts */
}

static void a_random_number_of_windows_is_not_taken_for_cost(void)
{
    struct program program = begin(windows, BUDGET_PPB, 50e6 / 8);
    CHECK(!run(&program)); /* 0.25 %: at half of the budget */
    /* Three times as many windows as planned: three times the cost, which says nothing. */
    program.now.wall_ns += 4 * SECOND_NS;
    program.now.cpu_ns += 4 * SECOND_NS;
    program.now.on_ns += 96000000;
    program.now.recording_ns += 600000 * COST_PS / 1000;
    CHECK(!opscope__governor_look(&program.governor, &program.asked, &program.now));
    CHECK(program.governor.overhead_ppb > BUDGET_PPB); /* what is shown is what it was */
}

static void a_new_wish_begins_anew_and_counts_go_on(void)
{
    struct program program = begin(half, BUDGET_PPB, 4e6);
    CHECK(run(&program));
    opscope__governor_start(&program.governor, 2 * BUDGET_PPB, &program.now);
    CHECK(sampling_of(&program).prob == 0.5);
    CHECK_EQUAL(program.governor.adaptation_count, 1);
    CHECK(run(&program));
    CHECK(fabs(sampling_of(&program).prob - 0.5 * 0.75 * 0.01 / 0.1) < 1e-9);
}

int main(void)
{
    RUN(a_program_over_the_budget_is_below_it_after_one_interval);
    RUN(windows_are_spread_out_and_come_back);
    RUN(it_never_samples_more_than_was_asked_for);
    RUN(there_is_always_something_to_see);
    RUN(sampling_below_the_floor_is_left_as_asked_for);
    RUN(without_a_budget_it_measures_and_changes_nothing);
    RUN(a_nearly_idle_program_is_judged_once_it_has_done_something);
    RUN(a_random_number_of_windows_is_not_taken_for_cost);
    RUN(a_new_wish_begins_anew_and_counts_go_on);
    return 0;
}
