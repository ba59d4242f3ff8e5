/* tests/native/test_warm_up.c -- how long a window warms up. */
#include "check.h"
#include "recorder/warm_up.h"

enum { MS = 1000000 };
static const double PERIOD_NS = 250.0 * MS;

static void half_of_a_window_and_at_most_a_millisecond(void)
{
    opscope__warm_up warm_up = {0};
    CHECK_EQUAL(opscope__warm_up_begin(&warm_up, 2.0 * MS, 1.0, PERIOD_NS, 5 * MS), 6 * MS);
    CHECK_EQUAL(opscope__warm_up_begin(&warm_up, 20.0 * MS, 1.0, PERIOD_NS, 5 * MS), 6 * MS);
    CHECK_EQUAL(opscope__warm_up_begin(&warm_up, 0.5 * MS, 1.0, PERIOD_NS, 5 * MS),
                5 * MS + MS / 4);
}

static void one_that_ends_in_time_is_over(void)
{
    opscope__warm_up warm_up = {0};
    opscope__warm_up_begin(&warm_up, 2.0 * MS, 1.0, PERIOD_NS, 5 * MS);
    CHECK_EQUAL(opscope__warm_up_again(&warm_up, 6 * MS, 0.5), 0);
    CHECK_EQUAL(opscope__warm_up_again(&warm_up, 7 * MS, 0.5), 0);
}

static void one_that_was_stopped_has_a_second_and_no_third(void)
{
    const struct {
        double unit;
        uint64_t length_ns;
    } draws[] = {{0.0, MS}, {0.5, 5 * MS / 2}, {1.0, 4 * MS}};
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) {
        opscope__warm_up warm_up = {0};
        opscope__warm_up_begin(&warm_up, 2.0 * MS, 1.0, PERIOD_NS, 5 * MS);
        const uint64_t end_ns = 50 * MS + draws[i].length_ns;
        CHECK_EQUAL(opscope__warm_up_again(&warm_up, 50 * MS, draws[i].unit), end_ns);
        CHECK_EQUAL(opscope__warm_up_again(&warm_up, end_ns + 40 * MS, 0.5), 0);
        /* The next window begins with a first one. */
        opscope__warm_up_begin(&warm_up, 2.0 * MS, 1.0, PERIOD_NS, 200 * MS);
        CHECK(opscope__warm_up_again(&warm_up, 250 * MS, 0.0) != 0);
    }
}

/* What a warm-up of 2 ms lasts after `count` earlier ones in which the program was `slower`. */
static uint64_t length_after(int count, double slower)
{
    opscope__warm_up warm_up = {0};
    for (int i = 0; i < count; i++) {
        opscope__warm_up_learn(&warm_up, 1.0 * MS, 300.0, 8.0 * MS, 2400.0 * slower);
    }
    return opscope__warm_up_begin(&warm_up, 4.0 * MS, 1.0, PERIOD_NS, 0);
}

static void one_is_the_longer_the_more_the_program_was_slower(void)
{
    CHECK_EQUAL(length_after(0, 2.0), MS);
    CHECK_EQUAL(length_after(1, 2.0), 6 * MS);
    CHECK_EQUAL(length_after(50, 1.5), 3 * MS + MS / 2);
    CHECK_EQUAL(length_after(50, 0.5), MS); /* not shorter */
    CHECK_EQUAL(length_after(50, 9.0), 8 * MS);
}

static void one_stays_short_in_a_short_period(void)
{
    opscope__warm_up warm_up = {0};
    opscope__warm_up_learn(&warm_up, 1.0 * MS, 300.0, 8.0 * MS, 9600.0);
    CHECK_EQUAL(opscope__warm_up_begin(&warm_up, 2.0 * MS, 1.0, 32.0 * MS, 0), 2 * MS);
    CHECK_EQUAL(opscope__warm_up_begin(&warm_up, 2.0 * MS, 1.0, 4.0 * MS, 0), MS);
}

static void one_is_longer_in_a_program_that_waits(void)
{
    opscope__warm_up warm_up = {0};
    CHECK_EQUAL(opscope__warm_up_begin(&warm_up, 2.0 * MS, 4.0, PERIOD_NS, 5 * MS), 9 * MS);
    opscope__warm_up_learn(&warm_up, 1.0 * MS, 300.0, 8.0 * MS, 3600.0);
    CHECK_EQUAL(opscope__warm_up_begin(&warm_up, 2.0 * MS, 4.0, PERIOD_NS, 0), 14 * MS);
    CHECK_EQUAL(opscope__warm_up_begin(&warm_up, 2.0 * MS, 5.0, PERIOD_NS, 0),
                15 * MS + 5 * MS / 8);
}

static void a_second_one_is_not_longer_because_the_program_waits(void)
{
    opscope__warm_up warm_up = {0};
    opscope__warm_up_begin(&warm_up, 2.0 * MS, 4.0, PERIOD_NS, 5 * MS);
    CHECK_EQUAL(opscope__warm_up_again(&warm_up, 9 * MS, 0.5), 0);
    CHECK_EQUAL(opscope__warm_up_again(&warm_up, 50 * MS, 0.5), 50 * MS + 5 * MS / 2);
}

static void one_without_ranges_says_nothing(void)
{
    opscope__warm_up warm_up = {0};
    opscope__warm_up_learn(&warm_up, 1.0 * MS, 0.0, 8.0 * MS, 0.0);
    CHECK_EQUAL(opscope__warm_up_begin(&warm_up, 2.0 * MS, 1.0, PERIOD_NS, 0), MS);
    opscope__warm_up_learn(&warm_up, 1.0 * MS, 300.0, 8.0 * MS, 4800.0);
    CHECK_EQUAL(opscope__warm_up_begin(&warm_up, 2.0 * MS, 1.0, PERIOD_NS, 0), 6 * MS);
}

static void a_window_that_hurries_does_not_warm_up_again(void)
{
    /* Its step comes before its time. */
    opscope__warm_up warm_up = {0};
    opscope__warm_up_begin(&warm_up, 2.0 * MS, 1.0, PERIOD_NS, 5 * MS);
    CHECK_EQUAL(opscope__warm_up_again(&warm_up, 5 * MS, 0.5), 0);
}

int main(void)
{
    half_of_a_window_and_at_most_a_millisecond();
    one_that_ends_in_time_is_over();
    one_that_was_stopped_has_a_second_and_no_third();
    one_is_the_longer_the_more_the_program_was_slower();
    one_stays_short_in_a_short_period();
    one_is_longer_in_a_program_that_waits();
    a_second_one_is_not_longer_because_the_program_waits();
    one_without_ranges_says_nothing();
    a_window_that_hurries_does_not_warm_up_again();
    return 0;
}
