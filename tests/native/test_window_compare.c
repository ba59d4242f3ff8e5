/* tests/native/test_window_compare.c -- whose CPU time a window compares, and whether its threads
 * share. */
#include <math.h>

#include "check.h"
#include "ranges.h"
#include "read_segment.h"
#include "recorder/state.h"
#include "recorder/window_compare.h"

/* A moment of a program: CPU time in ns of the threads known before and of the rest, ranges, and
 * what it took to begin threads, as measured in loops. */
static struct opscope__moment moment(uint64_t known_ns, uint64_t rest_ns, uint64_t count,
                                     uint64_t begun_ns)
{
    return (struct opscope__moment){
        .cpu = {.known_ns = known_ns, .rest_ns = rest_ns},
        .cost = {.counted_count = count, .begun_ns = begun_ns, .factor = 2.0}};
}

/* 800 ranges are only counted in 4 + 1 ms of known threads and the rest; the warm-up has 300 in
 * 2 + 7 ms, of which beginning a thread takes 0.5 ms. The slowness is the quotient of its sums. */
static double slowness(bool has_new, bool is_exact)
{
    opscope__window_compare compare = {.is_exact = is_exact,
                                       .count = 800.0,
                                       .from = moment(1000000, 2000000, 0, 0),
                                       .to = moment(5000000, 3000000, 0, 0)};
    struct opscope__moment now = moment(7000000, 10000000, 200, 250000);
    now.cpu.has_new = has_new;
    now.cost.in_no_cell_count = 100;
    opscope__warm_up warm_up = {0};
    opscope__window_compare_warm_up(&compare, &now, &warm_up);
    return warm_up.few > 0.0 ? warm_up.warm / warm_up.few : 0.0;
}

static bool is_near(double value, double expected)
{
    return fabs(value / expected - 1.0) < 1e-9;
}

static void without_new_threads_it_is_that_of_the_known_ones(void)
{
    CHECK(is_near(slowness(false, true), (1.5 / 300.0) / (4.0 / 800.0)));
}

static void once_a_thread_has_come_it_is_that_of_all(void)
{
    CHECK(is_near(slowness(true, true), (8.5 / 300.0) / (5.0 / 800.0)));
}

static void inexact_counts_say_nothing(void)
{
    CHECK(slowness(true, false) == 0.0);
}

/* Windows in which ranges take an eighth less time while they are recorded than while they are
 * counted, with that many threads. */
static struct opscope__cost after_windows(unsigned threads)
{
    struct opscope__window_compare compare = {
        .is_exact = true, .busy = threads, .count = 7000.0, .to = moment(8000000, 0, 0, 0)};
    compare.from = moment(0, 0, 0, 0);
    compare.warm = moment(9000000, 0, 500, 0);
    struct opscope__moment stop = moment(11000000, 0, 2500, 0);
    stop.cost.counted_ns = 2000 * 100;
    for (int i = 0; i < 100; i++) {
        opscope__window_compare_report(&compare, &stop, 100.0, 100.0);
    }
    struct opscope__cost cost;
    opscope__recorder_read_cost(&cost);
    return cost;
}

static void only_threads_that_share_may_do_more_while_they_are_recorded(void)
{
    start_recorder("");
    const struct opscope__cost alone = after_windows(1), shared = after_windows(2);
    CHECK(alone.factor > 0.0 && alone.slowdown == alone.factor);
    CHECK(shared.factor > 0.0 && shared.slowdown < 0.0);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

int main(void)
{
    make_directory();
    RUN(without_new_threads_it_is_that_of_the_known_ones);
    RUN(once_a_thread_has_come_it_is_that_of_all);
    RUN(inexact_counts_say_nothing);
    RUN(only_threads_that_share_may_do_more_while_they_are_recorded);
    remove_directory();
    return 0;
}
