/* tests/native/test_window_compare.c -- whose CPU time a window compares. */
#include <math.h>

#include "check.h"
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

int main(void)
{
    RUN(without_new_threads_it_is_that_of_the_known_ones);
    RUN(once_a_thread_has_come_it_is_that_of_all);
    RUN(inexact_counts_say_nothing);
    return 0;
}
