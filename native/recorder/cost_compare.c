/* recorder/cost_compare.c -- see recorder/cost_compare.h. */
#include "recorder/cost_compare.h"

#include <math.h>

enum {
    RECORDED_NS,
    RECORDED_COUNT,
    COST_NS,
    FEW_NS,
    FEW_COUNT,
    FEWEST_WINDOWS = 4,
    SELDOM = 8,
    EARLY = 16
};

static const double IN_FEW = OPSCOPE__COST_COMPARE_INSIDE;
/* The standard error of a factor from comparisons, relative to it, because IN_FEW is uncertain. */
static const double IN_FEW_ERROR =
    0.5 * OPSCOPE__COST_COMPARE_INSIDE / (1.0 - OPSCOPE__COST_COMPARE_INSIDE);
/* A part of the time below which the cost does not matter, as measured in loops; and the standard
 * error of a factor that is known well, relative to it. */
static const double MATTERS = 0.02, WELL_KNOWN = 0.04;
/* The older windows' share shrinks by one of this many with each window: a minute's windows. */
static const double HORIZON_WINDOWS = 240.0;
/* The standard error of a factor known otherwise, relative to it. */
static const double KNOWN_ERROR = 0.5;
/* The variance from n deviations is itself uncertain: it is multiplied by 1 + this / (n - 1). */
static const double FEW = 4.0;

void opscope__cost_compare_add(opscope__cost_compare *compare,
                               const struct opscope__cost_comparison *window)
{
    const double values[OPSCOPE__COST_COMPARED] = {
        [RECORDED_NS] = window->recorded_ns, [RECORDED_COUNT] = window->recorded_count,
        [COST_NS] = window->cost_ns,         [FEW_NS] = window->few_ns,
        [FEW_COUNT] = window->few_count,
    };
    const double keep = 1.0 - 1.0 / HORIZON_WINDOWS;
    compare->count = keep * compare->count + 1.0;
    for (int i = 0; i < OPSCOPE__COST_COMPARED; i++) {
        compare->sums[i] = keep * compare->sums[i] + values[i];
        for (int k = 0; k < OPSCOPE__COST_COMPARED; k++) {
            compare->products[i][k] = keep * compare->products[i][k] + values[i] * values[k];
        }
    }
}

/* The sum over windows of the square of values times `by`. */
static double square_sum(const opscope__cost_compare *compare, const double *by)
{
    double sum = 0.0;
    for (int i = 0; i < OPSCOPE__COST_COMPARED; i++) {
        for (int k = 0; k < OPSCOPE__COST_COMPARED; k++) {
            sum += by[i] * by[k] * compare->products[i][k];
        }
    }
    return sum > 0.0 ? sum : 0.0;
}

/* What the comparisons say of the factor; its variance is infinite if they say nothing. */
struct found {
    double factor, variance;
};

static struct found find(const opscope__cost_compare *compare)
{
    const double *sums = compare->sums;
    const double cost_ns = sums[COST_NS] * (1.0 - IN_FEW);
    if (compare->count < FEWEST_WINDOWS || sums[FEW_COUNT] <= 0.0 || cost_ns <= 0.0) {
        return (struct found){.variance = (double)INFINITY};
    }
    const double range_ns = sums[FEW_NS] / sums[FEW_COUNT];
    const double ratio = sums[RECORDED_COUNT] / sums[FEW_COUNT];
    const double factor = (sums[RECORDED_NS] - sums[RECORDED_COUNT] * range_ns) / cost_ns;
    const double deviation[OPSCOPE__COST_COMPARED] = {
        [RECORDED_NS] = 1.0, [RECORDED_COUNT] = -range_ns,   [COST_NS] = -factor * (1.0 - IN_FEW),
        [FEW_NS] = -ratio,   [FEW_COUNT] = ratio * range_ns,
    };
    const double of_few = 1.0 + FEW / (compare->count - 1.0);
    return (struct found){factor, square_sum(compare, deviation) / (cost_ns * cost_ns) * of_few};
}

bool opscope__cost_compare_is_wanted(const opscope__cost_compare *compare, uint64_t window_number)
{
    if (window_number % SELDOM == 0 || (compare->count < FEWEST_WINDOWS && window_number < EARLY)) {
        return true;
    }
    if (compare->count < FEWEST_WINDOWS) {
        return false; /* its threads come and go, or it runs nothing */
    }
    const struct found found = find(compare);
    const double *sums = compare->sums;
    return sums[COST_NS] > MATTERS * sums[RECORDED_NS] &&
           !(found.variance < WELL_KNOWN * WELL_KNOWN * found.factor * found.factor);
}

struct opscope__cost_factor opscope__cost_compare_factor(const opscope__cost_compare *compare,
                                                         double known)
{
    const struct found found = find(compare);
    if (isinf(found.variance)) {
        return (struct opscope__cost_factor){known, KNOWN_ERROR * known};
    }
    const double known_variance = KNOWN_ERROR * known * KNOWN_ERROR * known;
    const double share = known_variance / (known_variance + found.variance);
    return (struct opscope__cost_factor){
        known + share * (found.factor - known),
        hypot(sqrt((1.0 - share) * known_variance), IN_FEW_ERROR * share * found.factor)};
}
