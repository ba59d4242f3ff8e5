/* tests/native/test_cost_slowdown.c -- by how much windows contain less work, for simulated
 * programs with one thread and with several. */
#include "compared_program.h"

/* The cost and the slowdown. */
struct both {
    struct opscope__cost_factor cost, slowdown;
};

static struct both found_both(const struct program *program, int windows, uint64_t seed)
{
    opscope__random random;
    opscope__random_seed(&random, seed, 1);
    opscope__cost_compare compare = {0};
    for (int i = 0; i < windows; i++) {
        add_window(&compare, program, &random);
    }
    const struct opscope__cost_factor cost =
        opscope__cost_compare_factor(&compare, KNOWN, KNOWN_ERROR);
    return (struct both){cost, opscope__cost_compare_slowdown(&compare, cost)};
}

/* They compete for the GIL less while their ranges are recorded. */
static void threads_may_do_more_while_they_are_recorded(void)
{
    enum { PROCESSES = 200 };
    const struct program program = {
        .range_ns = 1000.0, .spread = 0.3, .factor = -1.5, .is_shared = true};
    double sum = 0.0, within = 0.0;
    for (uint64_t seed = 1; seed <= PROCESSES; seed++) {
        const struct both both = found_both(&program, 60, seed);
        CHECK(both.cost.factor > 0.0);
        sum += both.slowdown.factor / PROCESSES;
        within += fabs(both.slowdown.factor - program.factor) <= 1.96 * both.slowdown.error;
    }
    CHECK(fabs(sum - program.factor) < 0.2);
    CHECK(within / PROCESSES >= 0.9);
}

static void with_one_thread_the_slowdown_is_the_cost(void)
{
    const struct program program = {.range_ns = 1000.0, .spread = 0.3, .factor = -1.5};
    const struct both both = found_both(&program, 60, 1);
    CHECK(both.slowdown.factor == both.cost.factor && both.slowdown.error == both.cost.error);
}

static void threads_that_do_not_compete_lose_little_certainty(void)
{
    enum { PROCESSES = 200 };
    const struct program program = {
        .range_ns = 5000.0, .spread = 0.5, .factor = KNOWN, .is_shared = true};
    double cost = 0.0, slowdown = 0.0, within = 0.0;
    for (uint64_t seed = 1; seed <= PROCESSES; seed++) {
        const struct both both = found_both(&program, 60, seed);
        cost += both.cost.error;
        slowdown += both.slowdown.error;
        within += fabs(both.slowdown.factor - program.factor) <= 1.96 * both.slowdown.error;
    }
    CHECK(slowdown < 3.0 * cost);
    CHECK(within / PROCESSES >= 0.9);
}

/* All windows are alike, and the cost is what they say. */
static void certain_comparisons_give_a_slowdown(void)
{
    opscope__cost_compare compare = {0};
    for (int i = 0; i < 10; i++) {
        const struct opscope__cost_comparison window = {.recorded_ns = 2000.0,
                                                        .weight = 1.0,
                                                        .recorded_count = 1.0,
                                                        .cost_ns = 500.0,
                                                        .few_ns = 1000.0,
                                                        .few_count = 1.0,
                                                        .is_exact = true,
                                                        .is_shared = true};
        opscope__cost_compare_add(&compare, &window);
    }
    const struct opscope__cost_factor slowdown =
        opscope__cost_compare_slowdown(&compare, (struct opscope__cost_factor){2.0, 0.0});
    CHECK(fabs(slowdown.factor - 2.0) < 1e-6 && slowdown.error < 0.1);
}

int main(void)
{
    RUN(threads_may_do_more_while_they_are_recorded);
    RUN(with_one_thread_the_slowdown_is_the_cost);
    RUN(threads_that_do_not_compete_lose_little_certainty);
    RUN(certain_comparisons_give_a_slowdown);
    return 0;
}
