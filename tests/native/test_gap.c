/* tests/native/test_gap.c -- when windows open, and what they then tell, over simulated programs
 * that mostly wait. */
#include <math.h>

#include "check.h"
#include "recorder/gap.h"

static const double MS = 1e6, S = 1e9;
enum { PERIOD_NS = 250000000, ON_NS = 2000000 };

/* Works for `burst` ns, once in about `every`; what it does first is of one kind, the rest of
 * another. */
struct program {
    double burst, first, every;
    opscope__random random;
    double start;
};

struct seen {
    double windows, first, rest; /* ns of work, times weights */
    double first_all, rest_all;
    double first_squares, rest_squares; /* of the windows' contributions */
};

static double overlap(double from, double to, double a, double b)
{
    return fmax(0.0, fmin(to, b) - fmax(from, a));
}

static double exponential(opscope__random *random, double mean)
{
    return -log(opscope__random_unit(random)) * mean;
}

/* Runs from `*now` to `until`; `seen` gets what a window there contains. Returns the CPU time. */
static double go_on(struct program *program, double *now, double until, double weight,
                    struct seen *seen)
{
    double cpu = 0.0;
    const double from = *now;
    for (;;) {
        const double begins = program->start, middle = begins + program->first,
                     ends = begins + program->burst;
        const double first = overlap(from, until, begins, middle),
                     rest = overlap(from, until, middle, ends);
        cpu += first + rest;
        seen->first_all += first;
        seen->rest_all += rest;
        seen->first += weight * first;
        seen->rest += weight * rest;
        seen->first_squares += weight * first * weight * first;
        seen->rest_squares += weight * rest * weight * rest;
        if (ends > until) {
            break;
        }
        program->start = ends + exponential(&program->random, program->every);
    }
    *now = until;
    return cpu;
}

/* As recorder/window_cycle.c and the polls of recorder/window.c do it. */
static struct seen run(struct program program, double for_ns, uint64_t seed)
{
    opscope__gap gap = {.is_seeded = true};
    opscope__random_seed(&gap.random, seed, 1);
    opscope__random_seed(&program.random, seed, 2);
    program.start = exponential(&program.random, program.every);
    struct seen seen = {0};
    double now = 0.0, last = 0.0, cpu = 0.0, all = 0.0;
    opscope__gap_begin(&gap, PERIOD_NS, 0);
    double due = (double)opscope__gap_draw(&gap, 0, 0);
    while (now < for_ns) {
        const bool is_long = opscope__gap_is_long(&gap, (uint64_t)now);
        const double look = is_long ? fmax(now, (double)gap.look_ns) : due;
        double used = go_on(&program, &now, fmax(now, fmin(look, due)), 0.0, &seen);
        if (look < due) {
            all += used;
            cpu += used;
            if (opscope__gap_look(&gap, (uint64_t)all, (uint64_t)now)) {
                due = (double)opscope__gap_draw(&gap, (uint64_t)now, 0);
            }
            continue;
        }
        const double weight = (double)PERIOD_NS / ON_NS * gap.periods;
        used += go_on(&program, &now, now + ON_NS, weight, &seen);
        seen.windows += 1.0;
        all += used;
        opscope__gap_note(&gap, cpu + used, now - last);
        cpu = 0.0;
        last = now;
        due = (double)opscope__gap_draw(&gap, (uint64_t)now, 0);
    }
    return seen;
}

static bool is_within(double found, double truth, double squares)
{
    return fabs(found - truth) < 5.0 * sqrt(squares);
}

static void a_program_that_works_has_a_window_in_each_period(void)
{
    const struct program busy = {.burst = 1000.0 * S, .first = S, .every = 1.0};
    const struct seen seen = run(busy, 900.0 * S, 1);
    CHECK(fabs(seen.windows - 900.0 * S / PERIOD_NS) < 3.0);
    /* Also one that has only little to do, but always. */
    const struct program little = {.burst = MS, .first = 0.1 * MS, .every = 200.0 * MS};
    CHECK(fabs(run(little, 900.0 * S, 2).windows - 900.0 * S / PERIOD_NS) < 30.0);
}

static void one_that_waits_has_an_eighth_of_them(void)
{
    const struct program waits = {.burst = S, .first = S, .every = 1e6 * S};
    const double windows = run(waits, 1000.0 * S, 3).windows;
    const double least =
        OPSCOPE__GAP_STILL_WINDOWS + 1000.0 * S / PERIOD_NS / OPSCOPE__GAP_STILL_PERIODS;
    CHECK(windows > 0.9 * least);
    CHECK(windows < 1.1 * least);
}

static void what_is_done_after_a_long_wait_is_estimated_without_bias(void)
{
    /* Bursts of 5 ms to 4 s, and what they begin with, which rare windows see most of. */
    const double bursts[] = {5.0 * MS, 100.0 * MS, S, 4.0 * S};
    for (int i = 0; i < 4; i++) {
        const struct program program = {
            .burst = bursts[i], .first = bursts[i] / 5.0, .every = 60.0 * S};
        const struct seen seen = run(program, 3e6 * S, 4 + (uint64_t)i);
        CHECK(is_within(seen.first, seen.first_all, seen.first_squares));
        CHECK(is_within(seen.rest, seen.rest_all, seen.rest_squares));
        CHECK(sqrt(seen.first_squares) < 0.25 * seen.first_all); /* the intervals say something */
    }
}

static void after_a_wait_work_is_noticed_within_a_second(void)
{
    opscope__gap gap = {.is_seeded = true};
    opscope__random_seed(&gap.random, 1, 1);
    opscope__gap_begin(&gap, PERIOD_NS, 0);
    uint64_t due = 0;
    for (int i = 0; i < OPSCOPE__GAP_STILL_WINDOWS; i++) {
        due = opscope__gap_draw(&gap, due, 0);
        CHECK(gap.periods == 1);
        opscope__gap_note(&gap, 0.0, PERIOD_NS);
    }
    due = opscope__gap_draw(&gap, due, 0);
    CHECK(gap.periods == OPSCOPE__GAP_STILL_PERIODS);
    const uint64_t start = gap.long_to_ns - OPSCOPE__GAP_STILL_PERIODS * (uint64_t)PERIOD_NS;
    CHECK(opscope__gap_is_long(&gap, start));
    CHECK(!opscope__gap_is_long(&gap, gap.long_to_ns));
    (void)opscope__gap_look(&gap, 0, start);
    CHECK(!opscope__gap_look(&gap, 499000, start + OPSCOPE__GAP_LOOK_NS));
    CHECK(opscope__gap_look(&gap, 1000000, start + 2 * OPSCOPE__GAP_LOOK_NS));
    const uint64_t next = opscope__gap_draw(&gap, start + 2 * OPSCOPE__GAP_LOOK_NS, 0);
    CHECK(gap.periods == 1 && !opscope__gap_is_long(&gap, next));
    CHECK(next >= start + 2 * OPSCOPE__GAP_LOOK_NS &&
          next <= start + 2 * OPSCOPE__GAP_LOOK_NS + PERIOD_NS);
}

/* The share of windows that open in the first fifth of a turn, for a program that a quota stops
 * after each turn of `run_ns`, for the rest of 100 ms. A stopped driver opens its window as the
 * next turn begins, or draws again. */
static double share_after_stops(uint64_t run_ns, bool draws_again)
{
    enum { WINDOWS = 20000 };
    const uint64_t every_ns = 100 * (uint64_t)MS;
    opscope__gap gap = {0};
    opscope__gap_begin(&gap, PERIOD_NS, 0);
    double first = 0.0;
    uint64_t now_ns = 0;
    for (int i = 0; i < WINDOWS; i++) {
        uint64_t due_ns = opscope__gap_draw(&gap, now_ns, 31);
        do {
            const uint64_t turn_ns = due_ns % every_ns;
            now_ns = turn_ns < run_ns ? due_ns : due_ns - turn_ns + every_ns;
            due_ns = opscope__gap_again(&gap, now_ns);
        } while (draws_again && due_ns != 0);
        first += now_ns % every_ns < run_ns / 5;
        opscope__gap_note(&gap, (double)run_ns, (double)every_ns);
        now_ns += ON_NS;
    }
    return first / WINDOWS;
}

static void a_window_is_not_drawn_to_the_end_of_a_stop(void)
{
    CHECK(share_after_stops(25 * (uint64_t)MS, false) > 0.7);
    CHECK(share_after_stops(50 * (uint64_t)MS, false) > 0.58);
    /* The spread of such a share: 0.003. */
    CHECK(fabs(share_after_stops(50 * (uint64_t)MS, true) - 0.2) < 0.015);
    /* The fifth moment is the last. Half of those drawn again are in a stop too. */
    const double share = share_after_stops(25 * (uint64_t)MS, true);
    CHECK(share > 0.19 && share < 0.26);
}

/* Otherwise windows would prefer moments in which the program waits. */
static void a_driver_that_waits_for_other_processes_opens_its_window(void)
{
    enum { WINDOWS = 2000 };
    opscope__random random;
    opscope__random_seed(&random, 3, 5);
    opscope__gap gap = {0};
    opscope__gap_begin(&gap, PERIOD_NS, 0);
    uint64_t now_ns = 0;
    for (int i = 0; i < WINDOWS; i++) {
        const uint64_t due_ns = opscope__gap_draw(&gap, now_ns, 41);
        const bool is_stopped = i % 10 == 0;
        const double late = is_stopped ? 25.0 : 18.0 * opscope__random_unit(&random);
        now_ns = due_ns + (uint64_t)(late * (double)MS);
        const uint64_t again_ns = opscope__gap_again(&gap, now_ns);
        CHECK((again_ns != 0) == is_stopped);
        now_ns = again_ns > now_ns ? again_ns : now_ns;
    }
}

static void a_driver_in_time_opens_its_window(void)
{
    opscope__gap gap = {0};
    opscope__gap_begin(&gap, PERIOD_NS, 0);
    const uint64_t due_ns = opscope__gap_draw(&gap, 0, 37);
    CHECK_EQUAL(opscope__gap_again(&gap, due_ns), 0);
    CHECK_EQUAL(opscope__gap_again(&gap, due_ns + 19 * (uint64_t)MS), 0);
    /* One that was drawn for a moment that has passed, while the window before was open. */
    const uint64_t now_ns = due_ns + 10 * (uint64_t)PERIOD_NS;
    CHECK(opscope__gap_draw(&gap, now_ns, 0) >= now_ns);
}

/* Periods follow each other without a gap, so windows stand for all of the time together. */
static void a_window_stands_for_its_period_until_the_end(void)
{
    opscope__gap gap = {0};
    opscope__gap_begin(&gap, PERIOD_NS, 0);
    uint64_t now = 0;
    for (uint64_t end = PERIOD_NS; end < 100 * (uint64_t)PERIOD_NS; end += PERIOD_NS) {
        now = opscope__gap_draw(&gap, now, 1);
        CHECK(now + (uint64_t)opscope__gap_remaining_ns(&gap, now) == end);
        CHECK(opscope__gap_remaining_ns(&gap, end + 5) == -5.0); /* it was late */
        opscope__gap_note(&gap, PERIOD_NS, PERIOD_NS);
    }
    for (int i = 0; i <= OPSCOPE__GAP_STILL_WINDOWS; i++) {
        now = opscope__gap_draw(&gap, now, 1);
        opscope__gap_note(&gap, 0.0, PERIOD_NS);
    }
    CHECK(gap.periods > 1 && opscope__gap_remaining_ns(&gap, now) == 0.0);
}

int main(void)
{
    a_window_stands_for_its_period_until_the_end();
    a_program_that_works_has_a_window_in_each_period();
    one_that_waits_has_an_eighth_of_them();
    what_is_done_after_a_long_wait_is_estimated_without_bias();
    after_a_wait_work_is_noticed_within_a_second();
    a_window_is_not_drawn_to_the_end_of_a_stop();
    a_driver_that_waits_for_other_processes_opens_its_window();
    a_driver_in_time_opens_its_window();
    return 0;
}
