/* recorder/cost_compare.c -- see recorder/cost_compare.h. */
#include "recorder/cost_compare.h"

#include <math.h>

enum { FEWEST_WINDOWS = 4, SELDOM = 8, EARLY = 16, TRIES = 32 };

/* The standard error of what ranges cost where few are drawn, relative to it. */
static const double FEW_COST_ERROR = 0.5;
/* A part of the time below which the cost does not matter, as measured in loops; and the standard
 * error of a factor that is known well, relative to it. */
static const double MATTERS = 0.02, WELL_KNOWN = 0.04;
/* The older windows' share shrinks by one of this many with each window: a minute's windows. */
static const double HORIZON_WINDOWS = 240.0;
/* It does not hold for this program if it is that many standard errors of their difference from the
 * one of comparisons, by that many windows: a few windows' errors are uncertain themselves. */
static const double FAR = 2.5, MANY_WINDOWS = 16.0;
/* The variance from n deviations is itself uncertain: it is multiplied by 1 + this / (n - 1). */
static const double FEW = 4.0;

static void add(double *sum, double value)
{
    *sum = (1.0 - 1.0 / HORIZON_WINDOWS) * *sum + value;
}

void opscope__cost_compare_add(opscope__cost_compare *compare,
                               const struct opscope__cost_comparison *window)
{
    compare->tried += window->few_count > 0.0 || window->recorded_count > 0.0;
    const double count = window->weight * window->few_count;
    const double slower =
        window->recorded_ns * count - window->weight * window->recorded_count * window->few_ns;
    const double cost = (window->cost_ns - window->few_cost_ns) * count;
    if (!window->is_of_known || (slower == 0.0 && cost == 0.0)) {
        return; /* says nothing, and would make the others' errors look small */
    }
    add(&compare->count, 1.0);
    add(&compare->recorded_ns, window->recorded_ns);
    add(&compare->cost_ns, window->cost_ns);
    add(&compare->slower, slower);
    add(&compare->cost, cost);
    add(&compare->few_cost, window->few_cost_ns * count);
    add(&compare->slower_slower, slower * slower);
    add(&compare->slower_cost, slower * cost);
    add(&compare->cost_cost, cost * cost);
}

/* What the comparisons say of the factor; its variance is infinite if they say nothing. */
struct found {
    double factor, variance;
    double few_cost_error; /* the standard error because of FEW_COST_ERROR */
};

static struct found find(const opscope__cost_compare *compare)
{
    const double cost = compare->cost;
    if (compare->count < FEWEST_WINDOWS || cost <= 0.0) {
        return (struct found){.variance = (double)INFINITY};
    }
    const double factor = compare->slower / cost;
    const double squares = compare->slower_slower - 2.0 * factor * compare->slower_cost +
                           factor * factor * compare->cost_cost;
    const double of_few = 1.0 + FEW / (compare->count - 1.0);
    return (struct found){factor, fmax(0.0, squares) / (cost * cost) * of_few,
                          FEW_COST_ERROR * compare->few_cost / cost * fabs(factor)};
}

bool opscope__cost_compare_is_wanted(const opscope__cost_compare *compare, uint64_t window_number)
{
    if (window_number == 0) {
        return false;
    }
    if (window_number % SELDOM == 0) {
        return true;
    }
    if (compare->count < FEWEST_WINDOWS) {
        /* Later only while it runs ranges, and not if its threads come and go. */
        return compare->tried < TRIES && (compare->tried > 0 || window_number < EARLY);
    }
    const struct found found = find(compare);
    return compare->cost_ns > MATTERS * compare->recorded_ns &&
           !(found.variance < WELL_KNOWN * WELL_KNOWN * found.factor * found.factor);
}

struct opscope__cost_factor opscope__cost_compare_factor(const opscope__cost_compare *compare,
                                                         double known, double known_error)
{
    const struct found found = find(compare);
    if (isinf(found.variance)) {
        return (struct opscope__cost_factor){known, known_error};
    }
    const double difference = found.factor - known;
    const double usual_variance = known_error * known_error;
    const double excess = difference * difference - FAR * FAR * (usual_variance + found.variance);
    const bool is_far = excess > 0.0 && compare->count >= MANY_WINDOWS;
    const double known_variance = usual_variance + (is_far ? excess : 0.0);
    const double share = known_variance / (known_variance + found.variance);
    return (struct opscope__cost_factor){
        known + share * difference,
        hypot(sqrt((1.0 - share) * known_variance), share * found.few_cost_error)};
}
