/* tests/native/test_governor.c -- the governor keeps a simulated program within its budget, with
 * the test's own clock. */
#include <math.h>

#include "check.h"
#include "recorder/governor.h"

static const uint64_t SECOND_NS = 1000000000, COST_PS = 50000, BUDGET_PPB = 5000000,
                      OUTER_PPB = 3750000;

/* A program on one processor, as the recorder measures it. */
struct program {
    double ranges_per_second, outer_per_second;
    struct opscope__governor_reading now;
    opscope__governor governor;
    struct opscope__sampling asked;
};

static struct program begin(struct opscope__sampling asked, uint64_t budget_ppb, double rate)
{
    struct program program = {
        .ranges_per_second = rate,
        .asked = asked,
        .now = {.sampled_factor = 1.0, .whole_factor = 1.0, .follows_outer = true}};
    opscope__governor_start(&program.governor, budget_ppb, OUTER_PPB, &program.now);
    return program;
}

static struct opscope__sampling sampling_of(const struct program *program)
{
    return opscope__governor_scaled(&program->governor, &program->asked);
}

/* Runs for that long with `cpu` seconds of CPU time per second. */
static bool run_with(struct program *program, double seconds, double cpu)
{
    const struct opscope__sampling sampling = sampling_of(program);
    double share = sampling.window_ns != 0 ? (double)sampling.window_ns / (double)sampling.period_ns
                                           : sampling.prob;
    program->now.wall_ns += (uint64_t)(seconds * 1e9);
    program->now.cpu_ns += (uint64_t)(seconds * cpu * 1e9);
    program->now.sampled_ns +=
        (uint64_t)(seconds * program->ranges_per_second * share) * COST_PS / 1000;
    const uint64_t outer_ns = (uint64_t)(seconds * program->outer_per_second) * COST_PS / 1000;
    program->now.whole_ns += program->governor.spares_outer ? 0 : outer_ns;
    return opscope__governor_judge(&program->governor, &program->asked, &program->now);
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
    CHECK(fabs(sampling_of(&program).prob - 0.5 * 0.6 * 0.005 / 0.1) < 1e-9);
    CHECK(!run(&program)); /* and stays there */
    CHECK(!run(&program));
    CHECK(program.governor.overhead_ppb < BUDGET_PPB);
    CHECK(program.governor.overhead_ppb > BUDGET_PPB / 2);
    CHECK_EQUAL(program.governor.adaptation_count, 1);
}

static void it_acts_above_four_fifths_of_the_budget(void)
{
    struct program near = begin(half, BUDGET_PPB, 1.8e5); /* 0.45 % */
    CHECK(run(&near));
    CHECK(fabs(sampling_of(&near).prob - 0.5 * 0.6 * 0.005 / 0.0045) < 1e-6);
    struct program within = begin(half, BUDGET_PPB, 1.4e5); /* 0.35 % */
    CHECK(!run(&within));
    CHECK(sampling_of(&within).prob == 0.5);
}

static void windows_are_spread_out_and_come_back(void)
{
    struct program program = begin(windows, BUDGET_PPB, 50e6);
    CHECK(run(&program)); /* 250 % while on, 0.8 % of the time: 2 % */
    struct opscope__sampling sampling = sampling_of(&program);
    CHECK_EQUAL(sampling.window_ns, windows.window_ns);
    CHECK(sampling.period_ns > 1650000000 && sampling.period_ns < 1700000000);
    CHECK(!run(&program));
    program.ranges_per_second = 1e5; /* its work changes now */
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
    CHECK(!run_with(&program, 2.0, 0.001)); /* 2 ms of CPU time */
    CHECK_EQUAL(program.governor.overhead_ppb, 0);
    CHECK(!run_with(&program, 2.0, 0.001));
    CHECK(run_with(&program, 2.0, 1.0)); /* all of it counts */
}

static void windows_that_a_crowded_host_makes_longer_are_spread_out(void)
{
    struct program program = begin(windows, BUDGET_PPB, 50e6 / 8);
    CHECK(!run(&program));          /* 0.25 %: half of the budget */
    program.ranges_per_second *= 5; /* within windows: each lasts five times as long as planned */
    CHECK(run(&program));
    CHECK(program.governor.overhead_ppb > BUDGET_PPB);
    CHECK(!run(&program));
    CHECK(program.governor.overhead_ppb < BUDGET_PPB);
}

static void windows_by_the_microsecond_keep_to_the_budget_of_one_processor(void)
{
    const struct opscope__sampling dense = {1.0, 1000, 20000};
    for (int is_busy = 0; is_busy < 2; is_busy++) {
        struct program program = begin(dense, BUDGET_PPB, 0.0);
        double share = 0.0;
        for (int i = 0; i < 3; i++) {
            /* A window costs its thread 4 us: at first 20 %. */
            const uint64_t thread_ns = 2 * SECOND_NS / sampling_of(&program).period_ns * 4000;
            program.now.driver_ns += thread_ns;
            share = (double)thread_ns / 2e9;
            (void)run_with(&program, 2.0, is_busy ? 1.0 : 0.2);
        }
        CHECK_EQUAL(program.governor.adaptation_count, 1);
        CHECK(share > 0.0025 && share < 0.004);
    }
}

static void the_thread_of_usual_windows_is_no_reason_to_spread_them(void)
{
    struct program program = begin(windows, BUDGET_PPB, 0.0);
    for (int i = 0; i < 10; i++) {
        program.now.driver_ns += 16 * 100000;  /* 100 us each */
        CHECK(!run_with(&program, 4.0, 0.01)); /* most of the time it waits */
    }
    CHECK_EQUAL(sampling_of(&program).period_ns, windows.period_ns);
}

static void new_settings_begin_a_new_interval_and_counts_go_on(void)
{
    struct program program = begin(half, BUDGET_PPB, 4e6);
    CHECK(run(&program));
    opscope__governor_start(&program.governor, 2 * BUDGET_PPB, OUTER_PPB, &program.now);
    CHECK(sampling_of(&program).prob == 0.5);
    CHECK_EQUAL(program.governor.adaptation_count, 1);
    CHECK(run(&program));
    CHECK(fabs(sampling_of(&program).prob - 0.5 * 0.6 * 0.01 / 0.1) < 1e-9);
}

static void outer_ranges_that_take_more_than_their_budget_are_given_up(void)
{
    struct program program = begin(windows, BUDGET_PPB, 1e5);
    program.outer_per_second = 8e4; /* 0.4 %, while operators take almost nothing */
    CHECK(run(&program));
    CHECK(program.governor.spares_outer);
    CHECK_EQUAL(sampling_of(&program).period_ns, windows.period_ns);
    CHECK(!run(&program));
    CHECK(program.governor.spares_outer); /* as long as the settings stay */
}

static void operators_keep_to_what_outer_ranges_leave_of_the_budget(void)
{
    struct program program = begin(windows, BUDGET_PPB, 1e7); /* 0.4 % alone: within the budget */
    program.outer_per_second = 7e4;                           /* 0.35 % */
    CHECK(run(&program));
    CHECK(!program.governor.spares_outer);
    CHECK(sampling_of(&program).period_ns > windows.period_ns);
    for (int i = 0; i < 5; i++) {
        (void)run(&program);
    }
    CHECK(program.governor.overhead_ppb < BUDGET_PPB);
}

static void operators_keep_a_quarter_of_the_budget_beside_outer_ranges(void)
{
    struct program program = begin(windows, BUDGET_PPB, 1e7); /* 0.4 % alone: within the budget */
    program.outer_per_second = 1.9e5;                         /* 0.95 % */
    program.governor.outer_budget_ppb = 2 * BUDGET_PPB;
    for (int i = 0; i < 5; i++) {
        (void)run(&program);
    }
    CHECK(!program.governor.spares_outer);
    CHECK(program.governor.overhead_ppb > 9500000 + BUDGET_PPB / 8);
    CHECK(program.governor.overhead_ppb < 9500000 + BUDGET_PPB / 4);
}

/* After an hour, a hundredth of the cost so far is more than an interval may cost. */
static void what_becomes_known_of_the_cost_says_nothing_of_the_interval(void)
{
    struct program program = begin(windows, BUDGET_PPB, 8e6); /* 0.3 %: within the budget */
    for (int i = 0; i < 1000; i++) {
        program.now.sampled_factor = i % 2 == 0 ? 1.01 : 0.99;
        program.now.whole_factor = i % 2 == 0 ? 0.9 : 1.1;
        CHECK(!run(&program));
        CHECK(program.governor.overhead_ppb > 3000000 && program.governor.overhead_ppb < 3500000);
    }
    /* A segment of a fork begins anew. */
    program.now.sampled_ns = 0;
    program.now.whole_ns = 0;
    CHECK(!run(&program));
    CHECK(program.governor.overhead_ppb < BUDGET_PPB);
}

static void a_budget_that_was_given_is_a_limit_for_outer_ranges_too(void)
{
    struct opscope__settings settings = {
        .sampling = windows, .max_overhead_ppb = BUDGET_PPB, .budget_is_default = true};
    CHECK_EQUAL(opscope__settings_outer_budget_ppb(&settings), 2 * BUDGET_PPB);
    settings.budget_is_default = false;
    CHECK_EQUAL(opscope__settings_outer_budget_ppb(&settings), 3 * BUDGET_PPB / 4);
}

static void without_a_budget_outer_ranges_are_followed_at_any_cost(void)
{
    struct program program = begin(windows, 0, 1e5);
    program.outer_per_second = 1e7;
    CHECK(!run(&program));
    CHECK(!program.governor.spares_outer);
}

int main(void)
{
    RUN(a_program_over_the_budget_is_below_it_after_one_interval);
    RUN(it_acts_above_four_fifths_of_the_budget);
    RUN(windows_are_spread_out_and_come_back);
    RUN(it_never_samples_more_than_was_asked_for);
    RUN(there_is_always_something_to_see);
    RUN(sampling_below_the_floor_is_left_as_asked_for);
    RUN(without_a_budget_it_measures_and_changes_nothing);
    RUN(a_nearly_idle_program_is_judged_once_it_has_done_something);
    RUN(windows_that_a_crowded_host_makes_longer_are_spread_out);
    RUN(windows_by_the_microsecond_keep_to_the_budget_of_one_processor);
    RUN(the_thread_of_usual_windows_is_no_reason_to_spread_them);
    RUN(new_settings_begin_a_new_interval_and_counts_go_on);
    RUN(outer_ranges_that_take_more_than_their_budget_are_given_up);
    RUN(operators_keep_to_what_outer_ranges_leave_of_the_budget);
    RUN(operators_keep_a_quarter_of_the_budget_beside_outer_ranges);
    RUN(a_budget_that_was_given_is_a_limit_for_outer_ranges_too);
    RUN(what_becomes_known_of_the_cost_says_nothing_of_the_interval);
    RUN(without_a_budget_outer_ranges_are_followed_at_any_cost);
    return 0;
}
