/* recorder/cost_compare.h -- what recording costs in this program, from comparing its speed with
 * and without recording.
 *
 * Loops measure the cost of a range with everything in the caches (recorder/cost.h). In a program
 * a range costs up to twice as much, because each operator of a framework has its own code for the
 * case that it is recorded. Part of that code runs before and after the callback, where no clock of
 * ours can measure it. Therefore a window may begin with a stretch in which ranges are only
 * counted, one in 32, drawn by the framework. Such a stretch costs the program little. The CPU
 * time of a range in it, and of a range in the recorded part right afterwards, differ by the cost:
 *
 *     factor = (T_rec - N_rec * T_few / N_few) / (C_rec * (1 - q))
 *
 *     T   CPU time; N   ranges; both of the recorded part and of the stretch with few
 *     C   cost of the recorded ranges, as measured in loops
 *     q   the part of the cost that is in the stretch too
 *
 * A drawn range costs more than a recorded one, because little of its code is in the caches, and
 * because PyTorch makes its list of callbacks anew before it and after it: 3 times as much in a
 * loop of small operators, 5 to 10 times around larger ones, so q = 0.2, give or take a half. That
 * is an error of the factor which no number of windows makes smaller.
 *
 * The sums are over all windows. A window alone says little: the two stretches may contain
 * different work. The squares of the windows' deviations from the sums tell how uncertain the
 * factor is. It is averaged with the factor that recorder/cost.h knows otherwise, each weighted by
 * the inverse of its variance. If operators are long, the deviations are large, and the comparison
 * has no influence; but then the cost is a small part of the time.
 *
 * This code is arithmetic: no clock, no lock. Its caller is recorder/window_cycle.c.
 */
#ifndef OPSCOPE_RECORDER_COST_COMPARE_H
#define OPSCOPE_RECORDER_COST_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

/* The probability with which ranges are counted before a window. */
#define OPSCOPE__COST_COMPARE_PROB (1.0 / 32)
/* Above: q. */
#define OPSCOPE__COST_COMPARE_INSIDE 0.2

enum { OPSCOPE__COST_COMPARED = 5 };

/* Sums over windows; older windows have less influence. */
typedef struct opscope__cost_compare {
    double count;
    double sums[OPSCOPE__COST_COMPARED];
    double products[OPSCOPE__COST_COMPARED][OPSCOPE__COST_COMPARED];
} opscope__cost_compare;

/* Of one window; times and costs in ns. */
struct opscope__cost_comparison {
    double recorded_ns, recorded_count, cost_ns;
    double few_ns, few_count; /* `few_count`: estimated, the drawn ones by the probability */
};

void opscope__cost_compare_add(opscope__cost_compare *compare,
                               const struct opscope__cost_comparison *window);

/* Whether the next window should compare too. While the cost is a small part of the time, and once
 * the factor is known well, one window in some does. */
bool opscope__cost_compare_is_wanted(const opscope__cost_compare *compare, uint64_t window_number);

/* The factor by which recording costs more than in loops, and its standard error; `known`: as known
 * otherwise. */
struct opscope__cost_factor {
    double factor, error;
};
struct opscope__cost_factor opscope__cost_compare_factor(const opscope__cost_compare *compare,
                                                         double known);

#endif
