/* recorder/cost_compare.c -- see recorder/cost_compare.h. */
#include "recorder/cost_compare.h"

#include <math.h>

enum { FEWEST_WINDOWS = 4, SELDOM = 8, EARLY = 16, TRIES = 32 };

/* The standard error of what ranges cost where few are drawn, relative to it. */
static const double FEW_COST_ERROR = 0.5;
/* A part of the time below which the cost does not matter; and the standard error of a factor that
 * is known well, relative to it. */
static const double MATTERS = 0.02, WELL_KNOWN = 0.04;
/* The older windows' share shrinks by one of this many with each window: a minute's windows. */
static const double HORIZON_WINDOWS = 240.0;
/* What is known otherwise: the degrees of freedom of its distribution, the deviation from its
 * middle that 68 % do not exceed, and a deviation that none does. */
static const double DEGREES = 3.0, DEVIATION = 1.197, REACH = 8.0;
enum { STEPS = 128 };
/* A processor may do much of it beside an operator's work: for small NumPy operators on a Zen 5 it
 * cost 0.7 to 0.9 times as much as in a loop. Below this, the comparison has an error that the
 * deviations do not show: a CPU quota's stops, for example, are mostly before the same part. It is
 * at least the distance from here. */
static const double LEAST_POSSIBLE = 0.5;
/* By what part of their time threads that change each other's turns are slower or faster while they
 * are recorded: a standard deviation. */
static const double TURNS = 0.25;
/* Before anything is compared: the probability that a program's threads do. */
static const double TAKE_TURNS = 0.25;
/* Below these a factor or its error does not matter. */
static const double TINY = 0.05, LEAST_ERROR = 0.01;
/* A comparison that is less certain than this many times the known factor cannot tell one probable
 * factor from another. A few windows with far more ranges than others make most of it. */
static const double VAGUE = 3.0;
/* The variance from n deviations is itself uncertain: it is multiplied by 1 + this / (n - 1). */
static const double FEW = 4.0;

static void add(double *sum, double value)
{
    *sum = (1.0 - 1.0 / HORIZON_WINDOWS) * *sum + value;
}

static void add_sides(struct opscope__cost_quotient *quotient, double slower, double cost)
{
    add(&quotient->slower, slower);
    add(&quotient->cost, cost);
    add(&quotient->slower_slower, slower * slower);
    add(&quotient->slower_cost, slower * cost);
    add(&quotient->cost_cost, cost * cost);
}

void opscope__cost_compare_add(opscope__cost_compare *compare,
                               const struct opscope__cost_comparison *window)
{
    compare->tried += window->few_count > 0.0 || window->recorded_count > 0.0;
    const double count = window->weight * window->few_count;
    const double few_ns = window->weight * window->few_ns;
    const double slower = window->recorded_ns * count - window->recorded_count * few_ns;
    const double cost = (window->cost_ns - window->few_cost_ns) * count;
    if (!window->is_exact || (slower == 0.0 && cost == 0.0)) {
        return; /* says nothing, and would make the others' errors look small */
    }
    add(&compare->count, 1.0);
    add(&compare->recorded_ns, window->recorded_ns);
    add(&compare->cost_ns, window->cost_ns);
    add(&compare->few_cost, window->few_cost_ns * count);
    add(&compare->shared, window->is_shared ? 1.0 : 0.0);
    add_sides(&compare->recorded, slower, cost);
    if (window->recorded_count > 0.0) {
        add_sides(&compare->warm, window->warm_ns * count - window->warm_count * few_ns,
                  cost / window->recorded_count * window->warm_count);
    }
}

/* What the comparisons say of the factor; its variance is infinite if they say nothing. */
struct found {
    double factor, variance;
    double few_cost_error; /* the standard error because of FEW_COST_ERROR */
};

/* `known`: the factor as known otherwise; INFINITY if a comparison may say anything. */
static struct found find(const opscope__cost_compare *compare,
                         const struct opscope__cost_quotient *quotient, double known)
{
    const double cost = quotient->cost;
    if (compare->count < FEWEST_WINDOWS || cost <= 0.0) {
        return (struct found){.variance = (double)INFINITY};
    }
    const double factor = quotient->slower / cost;
    const double squares = quotient->slower_slower - 2.0 * factor * quotient->slower_cost +
                           factor * factor * quotient->cost_cost;
    const double of_few = 1.0 + FEW / (compare->count - 1.0);
    const double variance = fmax(0.0, squares) / (cost * cost) * of_few;
    const double vague = 1.0 + variance / (VAGUE * VAGUE * known * known);
    return (struct found){factor, variance * vague * vague,
                          FEW_COST_ERROR * compare->few_cost / cost * fabs(factor)};
}

bool opscope__cost_compare_is_wanted(const opscope__cost_compare *compare, uint64_t window_number,
                                     double factor)
{
    if (window_number == 0) {
        return false;
    }
    if (window_number % SELDOM == 0) {
        return true;
    }
    if (compare->count < FEWEST_WINDOWS) {
        /* Later only while it runs ranges. */
        return compare->tried < TRIES && (compare->tried > 0 || window_number < EARLY);
    }
    const struct found found = find(compare, &compare->recorded, factor);
    return factor * compare->cost_ns > MATTERS * compare->recorded_ns &&
           !(found.variance < WELL_KNOWN * WELL_KNOWN * found.factor * found.factor);
}

/* The logarithm of the relative probability of a factor that differs by `deviations` from the one
 * known otherwise. Student's distribution: in some programs the true one is far from it. */
static double log_probability(double deviations)
{
    return -0.5 * (DEGREES + 1.0) * log1p(deviations * deviations / DEGREES);
}

/* The middle, by logarithms, of the factor that is known otherwise and the one of warm-ups; the
 * less is known of the latter, the nearer the former. */
static double between(double known, struct found warm)
{
    if (isinf(warm.variance) || warm.factor <= known) {
        return known;
    }
    const double error = 2.0 * sqrt(warm.variance) / warm.factor;
    return known * pow(warm.factor / known, 0.5 / (1.0 + error * error));
}

/* The part of a grid of STEPS values below which there is that part of the sum. */
static double quantile(const double *values, double sum, double part)
{
    double rest = part * sum;
    int i = 0;
    for (; i < STEPS - 1 && values[i] < rest; i++) {
        rest -= values[i];
    }
    return (i + (values[i] > 0.0 ? fmin(1.0, rest / values[i]) : 0.0)) / STEPS;
}

struct opscope__cost_factor opscope__cost_compare_factor(const opscope__cost_compare *compare,
                                                         double known, double known_error)
{
    const struct found found = find(compare, &compare->recorded, known);
    if (isinf(found.variance)) {
        return (struct opscope__cost_factor){known, known_error};
    }
    /* The logarithm of the factor is known with this scale: its middle 68 % are then those of
     * known_error. */
    const double scale = asinh(known_error / known) / DEVIATION;
    const double middle = between(known, find(compare, &compare->warm, known));
    const double below = fmax(0.0, LEAST_POSSIBLE - found.factor);
    const double error =
        fmax(hypot(hypot(sqrt(found.variance), found.few_cost_error), below), LEAST_ERROR);
    /* Where both leave a factor possible; or if there is none, between the two. */
    double low = fmax(log(middle) - REACH * scale, log(fmax(found.factor - REACH * error, TINY)));
    double high = fmin(log(middle) + REACH * scale, log(fmax(found.factor + REACH * error, TINY)));
    if (low > high) {
        const double other = low;
        low = high;
        high = other;
    }
    double values[STEPS], sum = 0.0, most = -(double)INFINITY;
    for (int i = 0; i < STEPS; i++) {
        const double place = low + (high - low) * (i + 0.5) / STEPS;
        const double off = (exp(place) - found.factor) / error;
        values[i] = log_probability((place - log(middle)) / scale) - 0.5 * off * off;
        most = fmax(most, values[i]);
    }
    for (int i = 0; i < STEPS; i++) {
        values[i] = exp(values[i] - most);
        sum += values[i];
    }
    const double part_68 = 0.3413;
    const double first = exp(low + (high - low) * quantile(values, sum, 0.5 - part_68));
    const double last = exp(low + (high - low) * quantile(values, sum, 0.5 + part_68));
    const double median = exp(low + (high - low) * quantile(values, sum, 0.5));
    return (struct opscope__cost_factor){median, 0.5 * (last - first)};
}

struct opscope__cost_factor opscope__cost_compare_slowdown(const opscope__cost_compare *compare,
                                                           struct opscope__cost_factor cost)
{
    const struct found found = find(compare, &compare->recorded, (double)INFINITY);
    if (isinf(found.variance) || compare->cost_ns <= 0.0 ||
        compare->shared < 0.5 * compare->count) {
        return cost;
    }
    /* Either they change nothing, as NumPy's threads do, or some part of the time: as probable as
     * the difference makes it. */
    const double turns = TURNS * compare->recorded_ns / compare->cost_ns;
    const double of_cost = cost.error * cost.error;
    const double of_found =
        found.variance + found.few_cost_error * found.few_cost_error + LEAST_ERROR * LEAST_ERROR;
    const double off = found.factor - cost.factor;
    const double same = of_cost + of_found, other = same + turns * turns;
    const double same_more = exp(0.5 * off * off * (1.0 / other - 1.0 / same)) * sqrt(other / same);
    const double probability = 1.0 / (1.0 + (1.0 / TAKE_TURNS - 1.0) * same_more);
    const double share = (of_cost + turns * turns) / other;
    const double moved = share * off, of_moved = share * of_found;
    const double variance = probability * of_moved + (1.0 - probability) * of_cost +
                            probability * (1.0 - probability) * moved * moved;
    return (struct opscope__cost_factor){cost.factor + probability * moved, sqrt(variance)};
}
