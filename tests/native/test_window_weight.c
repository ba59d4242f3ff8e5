/* tests/native/test_window_weight.c -- windows over simulated programs, whose ranges are known:
 * compares the weighted ranges in windows with all ranges. */
#include <math.h>

#include "check.h"
#include "record/random.h"
#include "recorder/window_weight.h"

static const double ON = 2e6, PERIOD = 250e6;

/* A program with different shares of the processor outside and inside of windows; its ranges take
 * `range` ns of work each. If `burst` is not 0 it works only in bursts of `burst` ns, and rests for
 * `rest` times that. */
struct program {
    double outside_share, inside_share, range;
    double recording; /* cost of recording a range, ns */
    double warm_up;   /* ns before each window in which ranges are recorded and not counted */
    int unknown;      /* the number of windows after which the cost is known; before, half of it */
    double burst, rest;
    double rise; /* each window is this many times as long as the one before, up to 50 ms; 0: all
                    are alike */
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

static struct sums run(const struct program *program, opscope__window_weight *book, int windows,
                       uint64_t seed)
{
    opscope__random random;
    opscope__random_seed(&random, seed, 1);
    struct sums sums = {0};
    double now = exponential(&random, program->burst * 10.0 + 1.0), on = ON;
    opscope__window_weight_plan(book, ON, PERIOD);
    for (int i = 0; i < windows; i++) {
        double gap = exponential(&random, PERIOD - on), outside = 0.0;
        for (double step = 0.0; step < gap;
             step += 1e6) { /* in steps, because bursts begin and end */
            const double length = fmin(1e6, gap - step);
            outside += is_at_work(program, now + step) ? program->outside_share * length : 0.0;
        }
        now += gap;
        const double inside = is_at_work(program, now) ? program->inside_share * on : 0.0;
        now += on;
        const double count = inside / (program->range + program->recording);
        const double weight = opscope__window_weight_now(book);
        const double in_warm_up = program->outside_share * program->warm_up;
        const double warm_up_count = in_warm_up / (program->range + program->recording);
        const struct opscope__window_weight_cycle cycle = {
            .weight = weight,
            .on = on,
            .wall = gap + on,
            .inside = inside,
            .outside = outside + in_warm_up,
            .recording = count * fabs(program->recording) / 2.0,
            .recording_outside = warm_up_count * fabs(program->recording) / 2.0,
            .slowdown = i < program->unknown ? 1.0 : copysign(2.0, program->recording)};
        opscope__window_weight_count(book, &cycle);
        sums.ranges += outside / program->range + warm_up_count + count;
        sums.estimate += weight * count;
        sums.last_weight = weight;
        const double ratio = fmin(program->rise, 50e6 / on);
        if (program->rise != 0.0) {
            on *= ratio;
            opscope__window_weight_resize(book, ratio);
        }
    }
    return sums;
}

static struct sums run_anew(const struct program *program, int windows, uint64_t seed)
{
    opscope__window_weight book = {0};
    return run(program, &book, windows, seed);
}

struct spread {
    double mean, deviation;
};

/* The ratio of estimate to truth, over processes with that many windows. */
static struct spread spread_of(const struct program *program, int windows, uint64_t runs)
{
    double sum = 0.0, squares = 0.0;
    for (uint64_t seed = 1; seed <= runs; seed++) {
        struct sums sums = run_anew(program, windows, seed);
        const double ratio = sums.estimate / sums.ranges;
        sum += ratio;
        squares += ratio * ratio;
    }
    const double mean = sum / (double)runs;
    return (struct spread){mean, sqrt(squares / (double)runs - mean * mean)};
}

static void the_first_weight_is_by_the_plan(void)
{
    opscope__window_weight book = {0};
    opscope__window_weight_plan(&book, ON, PERIOD);
    CHECK(opscope__window_weight_now(&book) == PERIOD / ON);
}

static void a_busy_program_is_counted_closer_than_its_windows_fell(void)
{
    const struct program program = {.outside_share = 1.0, .inside_share = 1.0, .range = 1000.0};
    struct sums sums = run_anew(&program, 4000, 1);
    /* The windows alone would be 1.6 % off: the square root of their number. The work owed at the
     * end is that of one or two windows of 4000. */
    CHECK(fabs(sums.estimate / sums.ranges - 1.0) < 0.004);
}

static void a_program_that_gets_less_of_the_processor_in_windows_is_counted_whole(void)
{
    const struct program program = {.outside_share = 0.5, .inside_share = 0.4, .range = 1000.0};
    struct sums sums = run_anew(&program, 4000, 2);
    CHECK(fabs(sums.estimate / sums.ranges - 1.0) < 0.02); /* by time alone it would be 20 % less */
}

/* On a crowded host the kernel runs the threads of a process after each other, and so the program
 * when the window opens. By the quotient of times, 48 % too much would be counted in 8 s, and 24 %
 * in 16 s. */
static void a_program_that_gets_more_of_the_processor_in_windows_is_counted_right_soon(void)
{
    const struct program more = {.outside_share = 0.2, .inside_share = 1.0, .range = 1000.0};
    CHECK(spread_of(&more, 32, 400).mean < 1.06);
    CHECK(fabs(spread_of(&more, 64, 400).mean - 1.0) < 0.02);
    const struct program less = {.outside_share = 0.9, .inside_share = 0.25, .range = 1000.0};
    CHECK(fabs(spread_of(&less, 64, 400).mean - 1.0) < 0.05); /* by time, 7 % too little */
}

/* One window of ten meets work. Sums over processes: those with little work count little. */
static void a_program_that_works_in_bursts_is_not_counted_too_often(void)
{
    const struct program program = {
        .outside_share = 1.0, .inside_share = 1.0, .range = 1000.0, .burst = 50e6, .rest = 9.0};
    for (int windows = 8; windows <= 128; windows *= 4) {
        double estimates = 0.0, ranges = 0.0;
        for (uint64_t seed = 1; seed <= 2000; seed++) {
            const struct sums sums = run_anew(&program, windows, seed);
            estimates += sums.estimate;
            ranges += sums.ranges;
        }
        CHECK(fabs(estimates / ranges - 1.0) < 0.15);
    }
}

static void what_recording_takes_is_not_taken_for_work(void)
{
    const struct program program = {
        .outside_share = 1.0, .inside_share = 1.0, .range = 1000.0, .recording = 250.0};
    struct sums sums = run_anew(&program, 4000, 3);
    CHECK(fabs(sums.estimate / sums.ranges - 1.0) < 0.02); /* the same */
}

static void a_program_that_does_more_while_it_is_recorded_is_not_counted_too_often(void)
{
    const struct program program = {
        .outside_share = 1.0, .inside_share = 1.0, .range = 1000.0, .recording = -200.0};
    struct sums sums = run_anew(&program, 4000, 3);
    CHECK(fabs(sums.estimate / sums.ranges - 1.0) < 0.01); /* it would be 25 % more */
}

/* 40 ms before each window of 2 ms: without the cost in them, 5 % too much would be counted. */
static void what_recording_takes_before_windows_is_not_taken_for_work(void)
{
    const struct program program = {.outside_share = 1.0,
                                    .inside_share = 1.0,
                                    .range = 1000.0,
                                    .recording = 500.0,
                                    .warm_up = 40e6};
    struct sums sums = run_anew(&program, 4000, 3);
    CHECK(fabs(sums.estimate / sums.ranges - 1.0) < 0.01);
}

static void a_cost_that_becomes_known_late_corrects_what_earlier_windows_counted(void)
{
    const struct program program = {.outside_share = 1.0,
                                    .inside_share = 1.0,
                                    .range = 1000.0,
                                    .recording = 500.0,
                                    .unknown = 300};
    struct sums sums = run_anew(&program, 400, 8);
    /* Without a correction, three quarters of the windows would count 17 % too little. */
    CHECK(fabs(sums.estimate / sums.ranges - 1.0) < 0.03);
}

static void an_uncertain_cost_makes_the_counted_work_uncertain(void)
{
    opscope__window_weight book = {0};
    opscope__window_weight_plan(&book, ON, PERIOD);
    const struct opscope__window_weight_cycle cycle = {.weight = 101.0,
                                                       .on = ON,
                                                       .wall = PERIOD,
                                                       .inside = ON,
                                                       .outside = PERIOD - ON,
                                                       .recording = 1000.0,
                                                       .slowdown = 2.0};
    opscope__window_weight_count(&book, &cycle);
    const double sure = opscope__window_weight_missing(&book, 0.0);
    const double unsure = opscope__window_weight_missing(&book, 0.25);
    CHECK(fabs(unsure / hypot(sure, 0.25 * 100.0 * 1000.0) - 1.0) < 1e-9);
}

static void a_process_of_a_quarter_of_a_minute_owes_little_at_its_end(void)
{
    const struct program program = {
        .outside_share = 1.0, .inside_share = 1.0, .range = 1000.0, .recording = 250.0};
    struct spread spread = spread_of(&program, 60, 400);
    /* If owed work alone made up for it, the recording time of 4 windows in 60 would be missing:
     * 1.3 %. */
    CHECK(fabs(spread.mean - 1.0) < 4.0 * spread.deviation / sqrt(400.0));
    CHECK(spread.deviation < 0.04);
}

static void a_program_that_mostly_rests_is_estimated_without_bias(void)
{
    /* Bursts of 50 ms, 5 s apart: one window in 100 finds work. */
    const struct program program = {
        .outside_share = 1.0, .inside_share = 1.0, .range = 1000.0, .burst = 50e6, .rest = 99.0};
    struct spread spread = spread_of(&program, 3000, 60);
    CHECK(fabs(spread.mean - 1.0) < 4.0 * spread.deviation / sqrt(60.0) + 0.01);
    CHECK(spread.deviation < 0.2);
}

static void windows_that_become_longer_are_estimated_without_bias(void)
{
    struct program busy = {.outside_share = 0.7, .inside_share = 0.7, .range = 1000.0, .rise = 1.2};
    const struct spread longer = spread_of(&busy, 60, 200);
    busy.rise = 0.0;
    const struct spread alike = spread_of(&busy, 60, 200);
    CHECK(fabs(longer.mean - 1.0) < 0.01);
    CHECK(longer.deviation < 1.2 * alike.deviation);
    const struct program bursts = {.outside_share = 1.0,
                                   .inside_share = 1.0,
                                   .range = 1000.0,
                                   .burst = 100e6,
                                   .rest = 4.0,
                                   .rise = 1.2};
    CHECK(fabs(spread_of(&bursts, 240, 200).mean - 1.0) < 0.05);
}

/* The calls of a busy program, and those estimated, at a moment of its life; its recorder draws a
 * moment in each period. */
static struct sums run_until(double end, opscope__random *random, double *missing)
{
    opscope__window_weight book = {0};
    opscope__window_weight_plan(&book, ON, PERIOD);
    double last = 0.0, estimate = 0.0;
    for (double period = 0.0;; period += PERIOD) {
        const double start = period + opscope__random_unit(random) * (PERIOD - ON);
        if (start + ON > end) {
            *missing = opscope__window_weight_missing(&book, 0.0);
            return (struct sums){.ranges = end, .estimate = estimate};
        }
        const double weight = opscope__window_weight_now(&book);
        const struct opscope__window_weight_cycle cycle = {
            .weight = weight,
            .on = ON,
            .wall = start + ON - last,
            .inside = ON,
            .outside = start - last,
            .remaining = period + PERIOD - start - ON,
            .slowdown = 1.0};
        estimate += weight * ON;
        last = start + ON;
        opscope__window_weight_count(&book, &cycle);
    }
}

/* If windows stood for the work before them only, 0.146 s would be missing at any moment. */
static void at_any_moment_nothing_is_missing_on_average(void)
{
    enum { RUNS = 4000 };
    for (double seconds = 1.0; seconds <= 16.0; seconds *= 2.0) {
        opscope__random random;
        opscope__random_seed(&random, 1, 1);
        double sum = 0.0, squares = 0.0, stated = 0.0;
        for (int i = 0; i < RUNS; i++) {
            const double end = (seconds + opscope__random_unit(&random)) * 1e9;
            double missing = 0.0;
            const struct sums sums = run_until(end, &random, &missing);
            const double off = sums.estimate - sums.ranges;
            sum += off;
            squares += off * off;
            stated += missing * missing;
        }
        const double mean = sum / RUNS, deviation = sqrt(squares / RUNS);
        CHECK(fabs(mean) < 4.0 * deviation / sqrt(RUNS));
        CHECK(deviation < 0.5 * PERIOD);
        CHECK(fabs(sqrt(stated / RUNS) / deviation - 1.0) < 0.1);
    }
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
    opscope__window_weight book = {0};
    const struct program even = {.outside_share = 1.0, .inside_share = 1.0, .range = 1000.0};
    const struct program crowded = {.outside_share = 0.25, .inside_share = 0.15, .range = 1000.0};
    (void)run(&even, &book, 20000, 5);
    (void)run(&crowded, &book, 1000, 6);
    struct sums sums = run(&crowded, &book, 4000, 7);
    CHECK(fabs(sums.estimate / sums.ranges - 1.0) < 0.02);
}

static void weights_keep_within_limits_whatever_is_measured(void)
{
    opscope__window_weight book = {0};
    opscope__window_weight_plan(&book, ON, PERIOD);
    struct opscope__window_weight_cycle cycle = {
        .weight = 1.0, .on = ON, .wall = PERIOD, .inside = ON, .outside = 1e12, .recording = 1e12};
    opscope__window_weight_count(&book, &cycle);
    CHECK(opscope__window_weight_now(&book) == 4.0 * PERIOD / ON);
    cycle.outside = 0.0;
    cycle.weight = 1e9;
    opscope__window_weight_count(&book, &cycle);
    CHECK(opscope__window_weight_now(&book) == 1.0);
}

static void what_was_done_after_the_last_window_is_owed_by_the_next_plan(void)
{
    opscope__window_weight book = {0};
    const struct program even = {.outside_share = 1.0, .inside_share = 1.0, .range = 1000.0};
    (void)run(&even, &book, 100, 8);
    const double before = book.owed;
    const struct opscope__window_weight_cycle rest = {.outside = 5e6};
    opscope__window_weight_count(&book, &rest);
    CHECK(book.owed == before + 5e6);
    opscope__window_weight_plan(&book, 2.0 * ON, PERIOD);
    CHECK(book.owed == before + 5e6);
}

int main(void)
{
    RUN(the_first_weight_is_by_the_plan);
    RUN(a_busy_program_is_counted_closer_than_its_windows_fell);
    RUN(a_program_that_gets_less_of_the_processor_in_windows_is_counted_whole);
    RUN(a_program_that_gets_more_of_the_processor_in_windows_is_counted_right_soon);
    RUN(a_program_that_works_in_bursts_is_not_counted_too_often);
    RUN(what_recording_takes_is_not_taken_for_work);
    RUN(a_program_that_does_more_while_it_is_recorded_is_not_counted_too_often);
    RUN(what_recording_takes_before_windows_is_not_taken_for_work);
    RUN(a_cost_that_becomes_known_late_corrects_what_earlier_windows_counted);
    RUN(an_uncertain_cost_makes_the_counted_work_uncertain);
    RUN(a_process_of_a_quarter_of_a_minute_owes_little_at_its_end);
    RUN(a_program_that_mostly_rests_is_estimated_without_bias);
    RUN(windows_that_become_longer_are_estimated_without_bias);
    RUN(at_any_moment_nothing_is_missing_on_average);
    RUN(nothing_done_leaves_the_weight_by_time);
    RUN(weights_follow_a_program_that_changes);
    RUN(weights_keep_within_limits_whatever_is_measured);
    RUN(what_was_done_after_the_last_window_is_owed_by_the_next_plan);
    return 0;
}
