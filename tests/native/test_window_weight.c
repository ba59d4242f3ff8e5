/* tests/native/test_exposure.c -- windows over made-up programs, whose ranges are known: what the
 * weights make of those in windows is held against all of them. */
#include <math.h>

#include "check.h"
#include "record/exposure.h"
#include "record/random.h"

static const double ON = 2e6, PERIOD = 250e6;

/* A program of which a share of the processor is got outside of windows, and another one inside;
 * its ranges take `range` ns of work each. Where `burst` is not 0 it works in bursts only, each as
 * long as many periods, and rests for `rest` times that. */
struct program {
    double outside_share, inside_share, range;
    double recording; /* what recording adds to a range, ns */
    double burst, rest;
};

struct sums {
    double ranges, estimate, last_weight;
};

static double exponential(opscope__random *random, double mean)
{
    return -log(opscope__random_unit(random)) * mean;
}

static bool is_at_work(const struct program *program, double now)
{
    return program->burst == 0.0 ||
           fmod(now, program->burst * (1.0 + program->rest)) < program->burst;
}

static struct sums run(const struct program *program, opscope__exposure *exposure, int windows,
                       uint64_t seed)
{
    opscope__random random;
    opscope__random_seed(&random, seed, 1);
    struct sums sums = {0};
    double now = exponential(&random, program->burst * 10.0 + 1.0);
    opscope__exposure_plan(exposure, ON, PERIOD);
    for (int i = 0; i < windows; i++) {
        double gap = exponential(&random, PERIOD - ON), outside = 0.0;
        for (double step = 0.0; step < gap; step += 1e6) { /* in steps, as bursts come and go */
            const double length = fmin(1e6, gap - step);
            outside += is_at_work(program, now + step) ? program->outside_share * length : 0.0;
        }
        now += gap;
        const double inside = is_at_work(program, now) ? program->inside_share * ON : 0.0;
        now += ON;
        const double count = inside / (program->range + program->recording);
        const double weight = opscope__exposure_weight(exposure);
        const struct opscope__exposure_cycle cycle = {.weight = weight,
                                                      .on = ON,
                                                      .wall = gap + ON,
                                                      .inside = inside,
                                                      .outside = outside,
                                                      .recording = count * program->recording};
        opscope__exposure_count(exposure, &cycle);
        sums.ranges += outside / program->range + count;
        sums.estimate += weight * count;
        sums.last_weight = weight;
    }
    return sums;
}

static struct sums run_anew(const struct program *program, int windows, uint64_t seed)
{
    opscope__exposure exposure = {0};
    return run(program, &exposure, windows, seed);
}

static void the_first_weight_is_by_the_plan(void)
{
    opscope__exposure exposure = {0};
    opscope__exposure_plan(&exposure, ON, PERIOD);
    CHECK(opscope__exposure_weight(&exposure) == PERIOD / ON);
}

static void a_busy_program_is_counted_closer_than_its_windows_fell(void)
{
    const struct program program = {.outside_share = 1.0, .inside_share = 1.0, .range = 1000.0};
    struct sums sums = run_anew(&program, 4000, 1);
    /* The windows alone would be 1.6 % off: the square root of their number. What is owed at the
     * end is some 3 windows' worth of 4000. */
    CHECK(fabs(sums.estimate / sums.ranges - 1.0) < 0.004);
}

static void a_program_that_gets_less_of_the_processor_in_windows_is_counted_whole(void)
{
    const struct program program = {.outside_share = 0.5, .inside_share = 0.4, .range = 1000.0};
    struct sums sums = run_anew(&program, 4000, 2);
    CHECK(fabs(sums.estimate / sums.ranges - 1.0) < 0.02); /* 20 % less by time alone */
}

static void what_recording_takes_is_not_taken_for_work(void)
{
    const struct program program = {
        .outside_share = 1.0, .inside_share = 1.0, .range = 1000.0, .recording = 250.0};
    struct sums sums = run_anew(&program, 4000, 3);
    CHECK(fabs(sums.estimate / sums.ranges - 1.0) < 0.02); /* likewise */
}

static void a_program_that_mostly_rests_is_estimated_without_bias(void)
{
    /* Bursts of 50 ms, 5 s apart: one window of 100 finds work. */
    const struct program program = {
        .outside_share = 1.0, .inside_share = 1.0, .range = 1000.0, .burst = 50e6, .rest = 99.0};
    double sum = 0.0, squares = 0.0;
    enum { RUNS = 60 };
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        struct sums sums = run_anew(&program, 3000, seed);
        const double ratio = sums.estimate / sums.ranges;
        sum += ratio;
        squares += ratio * ratio;
    }
    const double mean = sum / RUNS, deviation = sqrt(squares / RUNS - mean * mean);
    CHECK(fabs(mean - 1.0) < 4.0 * deviation / sqrt((double)RUNS) + 0.01);
    CHECK(deviation < 0.2);
}

static void nothing_done_leaves_the_weight_by_time(void)
{
    const struct program program = {.outside_share = 0.0, .inside_share = 0.0, .range = 1000.0};
    struct sums sums = run_anew(&program, 4000, 4);
    CHECK(fabs(sums.last_weight / (PERIOD / ON) - 1.0) < 0.1);
    CHECK(sums.estimate == 0.0);
}

static void weights_follow_a_program_that_changes(void)
{
    opscope__exposure exposure = {0};
    const struct program even = {.outside_share = 1.0, .inside_share = 1.0, .range = 1000.0};
    const struct program crowded = {.outside_share = 0.25, .inside_share = 0.15, .range = 1000.0};
    (void)run(&even, &exposure, 20000, 5);
    (void)run(&crowded, &exposure, 1000, 6);
    struct sums sums = run(&crowded, &exposure, 4000, 7);
    CHECK(fabs(sums.estimate / sums.ranges - 1.0) < 0.02);
}

static void weights_keep_within_limits_whatever_is_measured(void)
{
    opscope__exposure exposure = {0};
    opscope__exposure_plan(&exposure, ON, PERIOD);
    struct opscope__exposure_cycle cycle = {
        .weight = 1.0, .on = ON, .wall = PERIOD, .inside = ON, .outside = 1e12, .recording = 1e12};
    opscope__exposure_count(&exposure, &cycle);
    CHECK(opscope__exposure_weight(&exposure) == 4.0 * PERIOD / ON);
    cycle.outside = 0.0;
    cycle.weight = 1e9;
    opscope__exposure_count(&exposure, &cycle);
    CHECK(opscope__exposure_weight(&exposure) == 1.0);
}

static void what_was_done_after_the_last_window_is_owed_by_the_next_plan(void)
{
    opscope__exposure exposure = {0};
    const struct program even = {.outside_share = 1.0, .inside_share = 1.0, .range = 1000.0};
    (void)run(&even, &exposure, 100, 8);
    const double before = exposure.owed;
    const struct opscope__exposure_cycle rest = {.outside = 5e6};
    opscope__exposure_count(&exposure, &rest);
    CHECK(exposure.owed == before + 5e6);
    opscope__exposure_plan(&exposure, 2.0 * ON, PERIOD);
    CHECK(exposure.owed == before + 5e6);
}

int main(void)
{
    RUN(the_first_weight_is_by_the_plan);
    RUN(a_busy_program_is_counted_closer_than_its_windows_fell);
    RUN(a_program_that_gets_less_of_the_processor_in_windows_is_counted_whole);
    RUN(what_recording_takes_is_not_taken_for_work);
    RUN(a_program_that_mostly_rests_is_estimated_without_bias);
    RUN(nothing_done_leaves_the_weight_by_time);
    RUN(weights_follow_a_program_that_changes);
    RUN(weights_keep_within_limits_whatever_is_measured);
    RUN(what_was_done_after_the_last_window_is_owed_by_the_next_plan);
    return 0;
}
