/* tests/native/test_window_books.c -- whose work it is that a window met, and who bears the cost of
 * recording it. All times are in ns. */
#include <math.h>

#include "check.h"
#include "recorder/window_books.h"

/* Before the window known threads work for 800 us, others for 200; in it both for 50. */
static struct opscope__moment moment_at(uint64_t wall, uint64_t known, uint64_t rest)
{
    return (struct opscope__moment){.wall_ns = wall,
                                    .cpu = {.known_ns = known, .rest_ns = rest, .has_new = true},
                                    .cost = {.factor = 1.0, .slowdown = 1.0}};
}

struct result {
    double work, known_owed, rest_owed;
};

static struct result count(struct opscope__cost cost, bool has_new)
{
    opscope__window_books books = {0};
    opscope__window_books_plan(&books, 1e5, 1e6);
    const struct opscope__moment last = moment_at(0, 0, 0);
    const struct opscope__moment start = moment_at(1000000, 800000, 200000);
    struct opscope__moment stop = moment_at(1100000, 850000, 250000);
    stop.cost = cost;
    stop.cpu.has_new = has_new;
    const struct opscope__window_period period = {
        .last = &last, .start = &start, .stop = &stop, .weights = {10.0, 10.0}, .is_usual = true};
    const double work = opscope__window_books_count(&books, &period);
    return (struct result){work, books.known.owed, books.rest.owed};
}

static void check(struct result result, double known, double rest, bool has_new)
{
    CHECK(fabs(result.work - 10.0 * (known + (has_new ? rest : 0.0))) < 1e-3);
    CHECK(fabs(result.known_owed - (800000.0 - 9.0 * known)) < 1e-3);
    CHECK(fabs(result.rest_owed - (200000.0 - 9.0 * rest)) < 1e-3);
}

static void without_a_cost_work_is_the_processor_time(void)
{
    const struct opscope__cost none = {.factor = 1.0, .slowdown = 1.0};
    check(count(none, true), 50000.0, 50000.0, true);
    check(count(none, false), 50000.0, 50000.0, false);
}

static void ranges_cost_the_threads_that_they_ran_on(void)
{
    struct opscope__cost cost = {.factor = 1.0,
                                 .slowdown = 1.0,
                                 .sampled_ns = 20000,
                                 .cells_ns = 20000,
                                 .cells_new_ns = 18000};
    check(count(cost, true), 48000.0, 32000.0, true);
    cost.slowdown = 0.5; /* recording makes the program less slow than it costs */
    check(count(cost, true), 49000.0, 41000.0, true);
    cost.slowdown = 1.0;
    cost.sampled_ns = 30000; /* a third of them are in no cell */
    check(count(cost, true), 47000.0, 23000.0, true);
    check(count(cost, false), 20000.0, 50000.0, false);
}

static void preparing_costs_the_threads_that_are_prepared(void)
{
    const struct opscope__cost cost = {.factor = 2.0,
                                       .slowdown = 1.0,
                                       .sampled_ns = 10000,
                                       .begun_ns = 10000,
                                       .begun_new_ns = 9000};
    check(count(cost, true), 48000.0, 32000.0, true);
}

int main(void)
{
    RUN(without_a_cost_work_is_the_processor_time);
    RUN(ranges_cost_the_threads_that_they_ran_on);
    RUN(preparing_costs_the_threads_that_are_prepared);
    return 0;
}
