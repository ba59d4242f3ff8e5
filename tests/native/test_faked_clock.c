/* tests/native/test_faked_clock.c -- a clock that stops, runs backwards or jumps neither keeps the
 * measurement of the counter's rate waiting, nor makes the rate 0. */
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/real_time.h"
#include "check.h"

static int step_ns; /* of the clock, with each reading */

static int faked_clock(clockid_t id, struct timespec *now)
{
    static int64_t ns = 1000000000000000;
    (void)id;
    ns += step_ns;
    *now = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    return 0;
}

/* The rate is measured once in a process. */
static void measure_with(int each_ns)
{
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        step_ns = each_ns;
        opscope__clock_gettime = faked_clock;
        opscope__clock clock;
        opscope__clock_start(&clock);
        CHECK(clock.ticks_per_second > 0);
        CHECK(opscope__clock_ns(CLOCK_MONOTONIC) > 0);
        _exit(0);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
}

static void a_clock_that_stops(void)
{
    measure_with(0);
}

static void a_clock_that_runs_backwards(void)
{
    measure_with(-1);
    measure_with(-1000000000);
}

static void a_clock_that_jumps(void)
{
    measure_with(1000000000);
}

static void the_c_librarys_clock_runs(void)
{
    const uint64_t start = opscope__clock_ns(CLOCK_MONOTONIC);
    while (opscope__clock_ns(CLOCK_MONOTONIC) == start) {
    }
    CHECK(opscope__clock_ns(CLOCK_MONOTONIC) > start);
}

int main(void)
{
    RUN(a_clock_that_stops);
    RUN(a_clock_that_runs_backwards);
    RUN(a_clock_that_jumps);
    RUN(the_c_librarys_clock_runs);
    return 0;
}
