/* tests/native/test_cost_compare.c -- the cost of recording from comparisons, for simulated
 * programs whose cost is known: how close, how honest, and when it has no influence. */
#include <math.h>

#include "compared_program.h"

static struct opscope__cost_factor found(const struct program *program, int windows, uint64_t seed)
{
    opscope__random random;
    opscope__random_seed(&random, seed, 1);
    opscope__cost_compare compare = {0};
    for (int i = 0; i < windows; i++) {
        add_window(&compare, program, &random);
    }
    return opscope__cost_compare_factor(&compare, KNOWN, KNOWN_ERROR);
}

/* Half of the windows stand for ten times as many ranges as the others, and recording costs three
 * times as much in them, as when windows become rare. What is taken off all windows is right. */
static void windows_count_by_their_weight(void)
{
    opscope__cost_compare compare = {0};
    const double weights[] = {50.0, 500.0}, factors[] = {4.0, 12.0};
    double cost = 0.0, taken_off = 0.0;
    for (int i = 0; i < 60; i++) {
        const double weight = weights[i % 2], cost_ns = factors[i % 2] * LOOP_NS;
        const double count = ON_NS / (2000.0 + cost_ns);
        const struct opscope__cost_comparison window = {.recorded_ns = ON_NS,
                                                        .weight = weight,
                                                        .recorded_count = count,
                                                        .cost_ns = count * LOOP_NS,
                                                        .few_ns = FEW_NS,
                                                        .few_count = FEW_NS / 2000.0,
                                                        .is_exact = true};
        opscope__cost_compare_add(&compare, &window);
        cost += weight * count * cost_ns;
        taken_off += weight * count * LOOP_NS;
    }
    const double factor = opscope__cost_compare_factor(&compare, KNOWN, 100.0).factor;
    CHECK(fabs(factor * taken_off / cost - 1.0) < 0.05);
}

static void without_comparisons_the_factor_is_the_known_one(void)
{
    const opscope__cost_compare none = {0};
    const struct opscope__cost_factor factor =
        opscope__cost_compare_factor(&none, KNOWN, KNOWN_ERROR);
    CHECK(factor.factor == KNOWN && factor.error > 0.0);
    CHECK(opscope__cost_compare_is_wanted(&none, 1, 1.0));
    CHECK(!opscope__cost_compare_is_wanted(&none, 0, 1.0));
}

/* The mean over many processes, within what chance allows: their deviations over the root of their
 * number. */
static void the_factor_of_a_program_of_small_ranges_is_found_without_bias(void)
{
    enum { PROCESSES = 400 };
    const struct program program = {
        .range_ns = 900.0, .spread = 0.2, .factor = 2.1, .inside = IN_FEW};
    double sum = 0.0, squares = 0.0;
    for (uint64_t seed = 1; seed <= PROCESSES; seed++) {
        const double factor = found(&program, 240, seed).factor;
        sum += factor;
        squares += factor * factor;
    }
    const double mean = sum / PROCESSES;
    const double deviation = sqrt(squares / PROCESSES - mean * mean);
    CHECK(deviation < 0.15);
    /* The known factor keeps a small part of its influence, which is a bias of that part. */
    CHECK(fabs(mean - program.factor) < 4.0 * deviation / sqrt(PROCESSES) + 0.03);
}

static double share_within_two_errors(const struct program *program, int windows)
{
    enum { PROCESSES = 400 };
    double within = 0.0;
    for (uint64_t seed = 1; seed <= PROCESSES; seed++) {
        const struct opscope__cost_factor factor = found(program, windows, seed);
        within += fabs(factor.factor - program->factor) <= 1.96 * factor.error;
    }
    return within / PROCESSES;
}

static void the_stated_error_is_honest(void)
{
    const struct program program = {
        .range_ns = 900.0, .spread = 0.3, .factor = 1.7, .inside = IN_FEW};
    CHECK(share_within_two_errors(&program, 40) >= 0.9);
}

/* What is known otherwise of a framework's own code is uncertain; few windows say no more. */
static void the_stated_error_has_what_the_known_factor_lacks(void)
{
    const struct program program = {
        .range_ns = 5000.0, .spread = 0.9, .factor = 1.6 * KNOWN, .inside = IN_FEW};
    CHECK(share_within_two_errors(&program, 20) >= 0.9);
}

/* Also after many windows, of whatever the stretch with few ranges has of the cost. */
static void the_error_has_what_no_number_of_windows_tells(void)
{
    const double inside[] = {0.05, 0.15};
    for (int i = 0; i < 2; i++) {
        const struct program program = {
            .range_ns = 900.0, .spread = 0.2, .factor = 2.1, .inside = inside[i]};
        CHECK(share_within_two_errors(&program, 2000) >= 0.9);
    }
}

static void long_ranges_leave_the_factor_as_it_was_known(void)
{
    const struct program program = {
        .range_ns = 20000.0, .spread = 0.9, .factor = 3.0, .inside = IN_FEW};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const struct opscope__cost_factor factor = found(&program, 240, seed);
        CHECK(fabs(factor.factor - KNOWN) < 0.25 * KNOWN);
        CHECK(factor.error > 0.4 * KNOWN);
    }
}

/* One part of the program has ranges five times as long as another's. With sums over all windows,
 * the factor would be 2.5 for 2.1. */
static void parts_of_a_program_are_not_compared_with_each_other(void)
{
    const struct program program = {
        .range_ns = 900.0, .spread = 0.2, .factor = 2.1, .inside = IN_FEW, .phases = 4.0};
    CHECK(share_within_two_errors(&program, 240) >= 0.9);
    double sum = 0.0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        sum += found(&program, 240, seed).factor;
    }
    /* The known factor has a tenth of the influence. */
    CHECK(fabs(sum / 400 - program.factor) < 0.15);
}

/* Under a sanitizer, for example. */
static void a_factor_far_from_the_known_one_is_found_without_its_pull(void)
{
    const struct program program = {
        .range_ns = 3000.0, .spread = 0.2, .factor = 12.0, .inside = IN_FEW};
    CHECK(share_within_two_errors(&program, 240) >= 0.9);
}

/* In a program with many different operators, whose code is cold in each window, recording costs
 * many times what is known otherwise. A process of some seconds has few comparisons. */
static void a_factor_many_times_the_known_one_is_found_after_few_windows(void)
{
    enum { PROCESSES = 200, WINDOWS = 15 };
    const struct program program = {.range_ns = 1500.0, .spread = 0.3, .factor = 12.0};
    double sum = 0.0;
    for (uint64_t seed = 1; seed <= PROCESSES; seed++) {
        sum += found(&program, WINDOWS, seed).factor;
    }
    CHECK(sum / PROCESSES > 0.8 * program.factor);
    CHECK(share_within_two_errors(&program, WINDOWS) >= 0.9);
}

/* As while a program imports its modules. One window then says little. */
static void the_first_ranges_after_many_windows_without_are_still_few(void)
{
    const struct program program = {
        .range_ns = 900.0, .spread = 0.2, .factor = 5.0, .inside = IN_FEW};
    opscope__cost_compare compare = {0};
    const struct opscope__cost_comparison none = {
        .recorded_ns = ON_NS, .few_ns = FEW_NS, .is_exact = true};
    for (int i = 0; i < 100; i++) {
        opscope__cost_compare_add(&compare, &none);
    }
    opscope__random random;
    opscope__random_seed(&random, 1, 1);
    add_window(&compare, &program, &random);
    CHECK(opscope__cost_compare_factor(&compare, KNOWN, KNOWN_ERROR).factor == KNOWN);
}

static void windows_without_ranges_change_nothing(void)
{
    opscope__cost_compare compare = {0};
    const struct opscope__cost_comparison window = {
        .recorded_ns = ON_NS, .few_ns = FEW_NS, .is_exact = true};
    for (int i = 0; i < 100; i++) {
        opscope__cost_compare_add(&compare, &window);
    }
    CHECK(opscope__cost_compare_factor(&compare, KNOWN, KNOWN_ERROR).factor == KNOWN);
    CHECK(!opscope__cost_compare_is_wanted(&compare, 17, 1.0));
    CHECK(opscope__cost_compare_is_wanted(&compare, 8, 1.0)); /* the program may change */
}

/* Ranges of 10 us, which differ so much in the recorded parts that comparisons say little; in
 * warm-ups recording costs `cold` times as much as in loops. */
static struct opscope__cost_factor with_warm_ups(double cold, uint64_t seed)
{
    const struct program program = {.range_ns = 10000.0, .spread = 0.1};
    const struct program various = {.range_ns = 10000.0, .spread = 1.0};
    opscope__cost_compare compare = {0};
    opscope__random random;
    opscope__random_seed(&random, seed, 1);
    for (int i = 0; i < 30; i++) {
        const double count = 200.0;
        const struct opscope__cost_comparison window = {
            .weight = 125.0,
            .recorded_ns = count * (varied(&various, &random) + cold * LOOP_NS / 2.0),
            .recorded_count = count,
            .cost_ns = count * LOOP_NS,
            .few_ns = FEW_NS,
            .few_count = FEW_NS / varied(&program, &random),
            .warm_ns = count * (varied(&program, &random) + cold * LOOP_NS),
            .warm_count = count,
            .is_exact = true};
        opscope__cost_compare_add(&compare, &window);
    }
    return opscope__cost_compare_factor(&compare, KNOWN, KNOWN_ERROR);
}

/* In a program whose operators are cold in each window, the factor that is known otherwise is too
 * low; what comparisons say alone is too uncertain to correct it. */
static void the_cost_in_warm_ups_moves_a_factor_of_which_little_is_known(void)
{
    enum { PROCESSES = 100 };
    double cold = 0.0, warm = 0.0;
    for (uint64_t seed = 1; seed <= PROCESSES; seed++) {
        cold += with_warm_ups(20.0, seed).factor / PROCESSES;
        warm += with_warm_ups(KNOWN, seed).factor / PROCESSES;
    }
    CHECK(cold > 3.0 * KNOWN && cold < 12.0);
    CHECK(warm > 0.5 * KNOWN && warm < 2.5 * KNOWN);
}

/* The ranges of a stretch in which recording one costs that much: ten times as many in one stretch
 * of twenty. */
static double bursting(opscope__random *random, double ns, double cost_ns)
{
    const double range_ns = opscope__random_unit(random) < 0.05 ? 2000.0 : 20000.0;
    return ns / (range_ns * (0.5 + opscope__random_unit(random)) + cost_ns);
}

/* As in the training of BERT: the optimizer's ranges are much shorter than those of a layer. A few
 * windows decide what comparisons say, of the warm-ups too: ten times the true factor, for
 * example. */
static void windows_with_far_more_ranges_than_others_leave_the_factor_as_it_was_known(void)
{
    enum { PROCESSES = 400 };
    const double cost_ns = KNOWN * LOOP_NS, warm_ns = 1e6;
    double near = 0.0;
    for (uint64_t seed = 1; seed <= PROCESSES; seed++) {
        opscope__cost_compare compare = {0};
        opscope__random random;
        opscope__random_seed(&random, seed, 1);
        for (int i = 0; i < 60; i++) {
            const double count = bursting(&random, ON_NS, cost_ns);
            const struct opscope__cost_comparison window = {
                .weight = 125.0,
                .recorded_ns = ON_NS,
                .recorded_count = count,
                .cost_ns = count * LOOP_NS,
                .few_ns = FEW_NS,
                .few_count = bursting(&random, FEW_NS, 0.0),
                .warm_ns = warm_ns,
                .warm_count = bursting(&random, warm_ns, cost_ns),
                .is_exact = true};
            opscope__cost_compare_add(&compare, &window);
        }
        const double factor = opscope__cost_compare_factor(&compare, KNOWN, 0.9 * KNOWN).factor;
        near += factor > 0.8 * KNOWN && factor < 1.2 * KNOWN;
    }
    CHECK(near / PROCESSES >= 0.95);
}

/* Small operators of NumPy: much of recording runs beside their work. */
static void recording_may_cost_less_than_in_a_loop(void)
{
    const struct program program = {
        .range_ns = 500.0, .spread = 0.1, .factor = 0.7, .inside = IN_FEW};
    double sum = 0.0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        sum += found(&program, 120, seed).factor / 200;
    }
    CHECK(fabs(sum / program.factor - 1.0) < 0.1);
    CHECK(share_within_two_errors(&program, 120) >= 0.9);
}

/* Under a CPU quota, the part where ranges are only counted may begin after a stop more often than
 * the recorded one, and so be the slower one in each window: by a factor of -10, with a small
 * stated error. */
static void an_impossible_factor_has_little_influence(void)
{
    opscope__cost_compare compare = {0};
    opscope__random random;
    opscope__random_seed(&random, 1, 1);
    const struct program program = {
        .range_ns = 5000.0, .spread = 0.2, .factor = -10.0, .inside = IN_FEW};
    for (int i = 0; i < 40; i++) {
        add_window(&compare, &program, &random);
    }
    const double known = 5.0;
    const struct opscope__cost_factor factor = opscope__cost_compare_factor(&compare, known, known);
    CHECK(factor.factor > 0.3 * known && factor.factor < known);
    CHECK(factor.error > 0.3 * factor.factor);
}

static void cheap_ranges_are_compared_if_they_cost_much_in_this_program(void)
{
    opscope__cost_compare compare = {0};
    opscope__random random;
    opscope__random_seed(&random, 1, 1);
    const struct program program = {.range_ns = 10000.0, .spread = 0.9, .inside = IN_FEW};
    for (int i = 0; i < 20; i++) {
        add_window(&compare, &program, &random);
    }
    CHECK(!opscope__cost_compare_is_wanted(&compare, 17, 1.0));
    CHECK(opscope__cost_compare_is_wanted(&compare, 17, 8.0));
}

/* Beside many other processes, or while a program imports its modules, most windows meet none. */
static void a_program_whose_first_ranges_are_late_is_compared(void)
{
    const struct program program = {
        .range_ns = 900.0, .spread = 0.2, .factor = 2.1, .inside = IN_FEW};
    opscope__cost_compare compare = {0};
    opscope__random random;
    opscope__random_seed(&random, 1, 1);
    for (int i = 0; i < 3; i++) {
        add_window(&compare, &program, &random);
        CHECK(opscope__cost_compare_is_wanted(&compare, 101, 1.0));
        /* One of the two stretches has no CPU time. */
        const struct opscope__cost_comparison half = {
            .weight = 125.0, .recorded_ns = ON_NS, .recorded_count = 2000.0, .is_exact = true};
        opscope__cost_compare_add(&compare, &half);
        CHECK(opscope__cost_compare_is_wanted(&compare, 101, 1.0));
    }
    CHECK(opscope__cost_compare_factor(&compare, KNOWN, KNOWN_ERROR).factor == KNOWN);
}

static void a_program_whose_ranges_cannot_be_counted_is_seldom_compared(void)
{
    opscope__cost_compare compare = {0};
    const struct opscope__cost_comparison window = {.weight = 125.0,
                                                    .recorded_ns = ON_NS,
                                                    .recorded_count = 2000.0,
                                                    .few_ns = FEW_NS,
                                                    .few_count = 3000.0};
    for (int i = 0; i < 100; i++) {
        opscope__cost_compare_add(&compare, &window);
    }
    CHECK(opscope__cost_compare_factor(&compare, KNOWN, KNOWN_ERROR).factor == KNOWN);
    CHECK(!opscope__cost_compare_is_wanted(&compare, 17, 1.0));
    CHECK(opscope__cost_compare_is_wanted(&compare, 8, 1.0));
}

int main(void)
{
    RUN(windows_count_by_their_weight);
    RUN(the_cost_in_warm_ups_moves_a_factor_of_which_little_is_known);
    RUN(recording_may_cost_less_than_in_a_loop);
    RUN(an_impossible_factor_has_little_influence);
    RUN(cheap_ranges_are_compared_if_they_cost_much_in_this_program);
    RUN(without_comparisons_the_factor_is_the_known_one);
    RUN(the_factor_of_a_program_of_small_ranges_is_found_without_bias);
    RUN(the_stated_error_is_honest);
    RUN(the_stated_error_has_what_the_known_factor_lacks);
    RUN(the_error_has_what_no_number_of_windows_tells);
    RUN(long_ranges_leave_the_factor_as_it_was_known);
    RUN(windows_with_far_more_ranges_than_others_leave_the_factor_as_it_was_known);
    RUN(parts_of_a_program_are_not_compared_with_each_other);
    RUN(a_factor_far_from_the_known_one_is_found_without_its_pull);
    RUN(a_factor_many_times_the_known_one_is_found_after_few_windows);
    RUN(the_first_ranges_after_many_windows_without_are_still_few);
    RUN(windows_without_ranges_change_nothing);
    RUN(a_program_whose_first_ranges_are_late_is_compared);
    RUN(a_program_whose_ranges_cannot_be_counted_is_seldom_compared);
    return 0;
}
