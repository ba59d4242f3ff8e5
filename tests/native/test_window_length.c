/* tests/native/test_window_length.c -- windows over simulated programs: how long they become, and
 * what recording in them costs. */
#include <math.h>

#include "check.h"
#include "record/random.h"
#include "recorder/window_length.h"

static const double ON = 2e6, PERIOD = 250e6;

/* Windows of a program that uses `cpu` ns in each period, and in whose windows recording takes
 * `share` of the time. */
static double after_periods(opscope__window_length *length, int windows, double share, double cpu,
                            double period)
{
    for (int i = 0; i < windows; i++) {
        const double before = length->now;
        const double ratio = opscope__window_length_note(length, share * before, cpu, period, 0.0);
        CHECK(fabs(length->now - ratio * before) < 1e-6 * before);
        CHECK(ratio <= 1.5 + 1e-9);
    }
    return length->now;
}

static double after(opscope__window_length *length, int windows, double share, double cpu)
{
    return after_periods(length, windows, share, cpu, PERIOD);
}

static opscope__window_length planned(double window_ns, double period_ns)
{
    opscope__window_length length = {0};
    CHECK(opscope__window_length_plan(&length, window_ns, period_ns) == 1.0);
    CHECK(length.now == window_ns);
    return length;
}

static void windows_of_long_operators_become_long(void)
{
    opscope__window_length length = planned(ON, PERIOD);
    CHECK(after(&length, 24, 1e-5, PERIOD) == 50e6);
    CHECK(after(&length, 1000, 0.0, PERIOD) == 50e6);
    opscope__window_length often = planned(ON, 40e6);
    CHECK(after(&often, 100, 0.0, 40e6) == 0.2 * 40e6);
    opscope__window_length all = planned(40e6, 50e6);
    CHECK(after(&all, 100, 0.0, 50e6) == 40e6);
}

static void a_program_that_waits_has_longer_windows(void)
{
    const double of_a_processor[] = {4.0, 1.0, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.001};
    const double expected[] = {1.0, 1.0, 2.0, 4.0, 5.0, 5.0, 2.0, 1.0, 1.0};
    for (int i = 0; i < 9; i++) {
        opscope__window_length length = planned(ON, PERIOD);
        CHECK(length.stretch == 1.0);
        CHECK(fabs(after(&length, 200, 0.3, of_a_processor[i] * PERIOD) / ON - expected[i]) < 1e-6);
        CHECK(fabs(length.stretch - expected[i]) < 1e-6);
    }
    /* Not beyond the limit. */
    opscope__window_length often = planned(ON, 20e6);
    CHECK(after_periods(&often, 200, 0.3, 0.25 * 20e6, 20e6) == 0.2 * 20e6);
}

static void a_window_is_as_long_as_its_warm_up(void)
{
    opscope__window_length length = planned(ON, PERIOD);
    for (int i = 0; i < 10; i++) {
        (void)opscope__window_length_note(&length, 0.3 * length.now, PERIOD, PERIOD, 7e6);
    }
    CHECK(length.now == 7e6);
    CHECK(after(&length, 1, 0.3, PERIOD) == ON);
}

static void another_period_keeps_the_length(void)
{
    opscope__window_length length = planned(ON, PERIOD);
    const double waiting = after(&length, 200, 0.3, 0.25 * PERIOD);
    CHECK(fabs(waiting / (4.0 * ON) - 1.0) < 1e-6);
    CHECK(opscope__window_length_plan(&length, ON, 2.0 * PERIOD) == 1.0);
    CHECK(length.now == waiting);
    /* As if all windows had been of that plan. */
    CHECK(fabs(after_periods(&length, 1, 0.3, 0.5 * PERIOD, 2.0 * PERIOD) / waiting - 1.0) < 1e-6);
    /* Not beyond the limit of a shorter period. */
    const double ratio = opscope__window_length_plan(&length, ON, 20e6);
    CHECK(length.now == 2.0 * ON);
    CHECK(fabs(ratio - 0.5) < 1e-6);
}

static void another_plan_starts_with_its_own_length(void)
{
    opscope__window_length length = planned(ON, PERIOD);
    (void)after(&length, 100, 0.0, PERIOD);
    CHECK(opscope__window_length_plan(&length, 3e6, PERIOD) == 3e6 / 50e6);
    CHECK(length.now == 3e6);
}

static void windows_of_small_operators_are_as_planned(void)
{
    opscope__window_length length = planned(ON, PERIOD);
    CHECK(after(&length, 1000, 0.3, PERIOD) == ON);
}

static void recording_takes_its_share_of_the_programs_time(void)
{
    const double shares[] = {0.001, 0.003, 0.01, 0.03};
    const double cpu[] = {PERIOD, 8.0 * PERIOD, 0.5 * PERIOD};
    for (int i = 0; i < 12; i++) {
        opscope__window_length length = planned(ON, PERIOD);
        const double on = after(&length, 1000, shares[i % 4], cpu[i / 4]);
        const double wanted = 0.0005 * cpu[i / 4] / shares[i % 4];
        const double least = ON * fmax(1.0, PERIOD / cpu[i / 4]);
        const double expected = fmin(50e6, fmax(least, wanted));
        CHECK(fabs(on / expected - 1.0) < 0.05);
    }
}

static void a_program_that_turns_to_small_operators_has_one_long_window(void)
{
    opscope__window_length length = planned(ON, PERIOD);
    (void)after(&length, 100, 0.0, PERIOD);
    CHECK(after(&length, 1, 0.3, PERIOD) < 0.1 * 50e6);
    CHECK(after(&length, 1, 0.3, PERIOD) == ON);
}

static void a_program_that_does_almost_nothing_has_windows_as_planned(void)
{
    opscope__window_length length = planned(ON, PERIOD);
    (void)after(&length, 100, 0.0, PERIOD);
    CHECK(after(&length, 100, 0.0, 0.001 * PERIOD) == ON);
}

/* Of ten windows, one meets small operators at random; the others, long ones. */
static void bursts_of_small_operators_cost_little_on_average(void)
{
    opscope__random random;
    opscope__random_seed(&random, 11, 1);
    opscope__window_length length = planned(ON, PERIOD);
    double cost = 0.0;
    for (int i = 0; i < 10000; i++) {
        const double part = opscope__random_unit(&random) < 0.1 ? 0.3 * length.now : 0.0;
        cost += part;
        (void)opscope__window_length_note(&length, part, PERIOD, PERIOD, 0.0);
    }
    CHECK(cost / 10000.0 < 0.002 * PERIOD);
}

int main(void)
{
    RUN(windows_of_long_operators_become_long);
    RUN(a_program_that_waits_has_longer_windows);
    RUN(a_window_is_as_long_as_its_warm_up);
    RUN(another_period_keeps_the_length);
    RUN(another_plan_starts_with_its_own_length);
    RUN(windows_of_small_operators_are_as_planned);
    RUN(recording_takes_its_share_of_the_programs_time);
    RUN(a_program_that_turns_to_small_operators_has_one_long_window);
    RUN(a_program_that_does_almost_nothing_has_windows_as_planned);
    RUN(bursts_of_small_operators_cost_little_on_average);
    return 0;
}
