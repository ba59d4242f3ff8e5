/* recorder/cost_compare.h -- what recording costs in this program, from comparing its speed with
 * and without recording.
 *
 * Loops measure the cost of a range with everything in the caches (recorder/cost.h). In a program
 * a range costs twice as much, and up to 16 times beside programs that use the processor's caches,
 * because each operator of a framework has its own code for the case that it is recorded. Part of
 * that code runs before and after the callback, where no clock of ours can measure it. Therefore a
 * window may begin with a stretch in which ranges are only counted, at no cost: each thread counts
 * its ranges down anyway, and the PyTorch bridge counts PyTorch's (bridges/torch/count.h). Where
 * that bridge cannot, PyTorch draws one in 128. The CPU time of a range in this stretch, and of a
 * range in the recorded part right afterwards, differ by the cost:
 *
 *     T_rec N_few - N_rec T_few = factor (C_rec - C_few) N_few
 *
 *     T   CPU time; N   ranges; both of the recorded part, and of the stretch with few
 *     C   cost of the recorded ranges, and of as many ranges where some are drawn, as measured in
 *         loops (recorder/cost.h); C_few is 0 of ranges that are not drawn
 *
 * What a range costs where some are drawn is known to a half of it. That is an error of the factor
 * which no number of windows makes smaller.
 *
 * Both sides are summed over all windows. A window alone says little: the two stretches may contain
 * different work. The products are those of each window, because sums of T and N over windows with
 * small ranges and windows with large ones would compare one kind with the other. They have the
 * windows' weights: what is taken off a window's time counts as often. The squares
 * of the windows' deviations from the sums tell how uncertain the factor is.
 *
 * The factor that recorder/cost.h knows otherwise is taken for a distribution of the factor's
 * logarithm, with the weight at its ends that Student's has: in a program with many different
 * operators, whose code is cold in each window, recording costs ten times as much. The result is
 * the median of what both leave possible. If operators are long, the deviations are large, and the
 * comparison has no influence; but then the cost is a small part of the time.
 *
 * In BERT's training, one window in twenty has ten times as many ranges as half of the windows.
 * Such windows decide what comparisons say: in BERT's and a ResNet's training -45 to 101, with
 * standard errors of 25 to 47, where 2.2 and 3.7 were right. What is known otherwise leaves such
 * factors possible. So a comparison as uncertain as this counts as even less certain. Before, the
 * factor was up to four times as high as the true one.
 *
 * The same quotient of the warm-up instead of the recorded part says what recording costs while its
 * code is cold: more than in the recorded part, as loops mostly say less. The middle of the
 * distribution is between the two, by logarithms, as far as the quotient is known. Measured in 15 s
 * of each of six PyTorch programs, as found by comparisons, and this middle, with 2.3 for loops and
 * probes: 6.4 and 5.7; 6.3 and 7.3; 3.9 and 4.0; 6.5 and 5.2; 8.2 and 7.6; 12 ± 6 and 8.7.
 *
 * Recording is taken to cost at least half of what it does in a loop; if comparisons of a program
 * with one thread say less, something else differs. Threads that run ranges side by side compete
 * for Python's GIL, and how they take turns depends on how long each range takes. A server with a
 * thread per request took 1.13 us of CPU time for a range on average, 1.12 where ranges were only
 * counted, and 1.03 where they were recorded, of which recording had 0.09 (Zen 5). So the cost of
 * recording says how long its ranges take, but not how much work windows contain: that is the
 * slowdown, which may be negative. Without it, such a server's calls were estimated 1.2 to 1.3
 * times too high.
 *
 * This code is arithmetic: no clock, no lock. Its callers are recorder/cost.c and, through it,
 * recorder/window_compare.c.
 */
#ifndef OPSCOPE_RECORDER_COST_COMPARE_H
#define OPSCOPE_RECORDER_COST_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

/* The probability with which a framework draws ranges to count them, if nothing else does. */
#define OPSCOPE__COST_COMPARE_PROB (1.0 / 128)

/* Sums over windows, for a factor: the left side above, and the right one without factor, times the
 * window's weight; and the products of a window's two sides. */
struct opscope__cost_quotient {
    double slower, cost;
    double slower_slower, slower_cost, cost_cost;
};

/* Sums over windows; older windows have less influence. */
typedef struct opscope__cost_compare {
    double count;
    unsigned tried;              /* windows with ranges, also those whose comparison says nothing */
    double recorded_ns, cost_ns; /* of the windows' recorded parts */
    double few_cost;             /* C_few N_few, times the weight */
    double shared;               /* the number of those in which several threads ran ranges */
    struct opscope__cost_quotient recorded, warm; /* of the recorded parts, and of the warm-ups */
} opscope__cost_compare;

/* Of one window; times and costs in ns. */
struct opscope__cost_comparison {
    double recorded_ns, recorded_count, cost_ns;
    double few_cost_ns; /* of as many ranges where they are only counted */
    double few_ns, few_count;
    double warm_ns, warm_count; /* of the warm-up before the recorded part */
    double weight;              /* of the window */
    bool is_exact;              /* the counts are */
    bool is_shared;             /* several threads ran ranges */
};

void opscope__cost_compare_add(opscope__cost_compare *compare,
                               const struct opscope__cost_comparison *window);

/* Whether the next window should compare too; `factor`: as known so far. The first window does not:
 * it would come later, and of a short process never meet the first ranges. While the cost is a
 * small part of the time, and once the factor is known well, one window in some does; also if the
 * program runs no ranges. Beside many other processes most windows meet nothing, and those say
 * nothing of the program. */
bool opscope__cost_compare_is_wanted(const opscope__cost_compare *compare, uint64_t window_number,
                                     double factor);

/* The factor by which recording costs more than in loops, and its standard error; `known`: as known
 * otherwise, with the standard error `known_error`. */
struct opscope__cost_factor {
    double factor, error;
};
struct opscope__cost_factor opscope__cost_compare_factor(const opscope__cost_compare *compare,
                                                         double known, double known_error);

/* The same of the slowdown, by which windows contain less work; `cost`: the factor of the cost. */
struct opscope__cost_factor opscope__cost_compare_slowdown(const opscope__cost_compare *compare,
                                                           struct opscope__cost_factor cost);

#endif
