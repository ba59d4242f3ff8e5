/* recorder/interruption.h -- the part of the estimates' uncertainty that operators share: stops.
 *
 * The kernel stops a thread for its CPU quota or for another process. Such a stop lasts many times
 * as long as most operators and adds its whole length to the self time of the one that it hits.
 * Windows see few stops, so most operators are hit in none of them. The squared deviations of such
 * an operator are small, yet its true self time contains stops from between the windows. Its own
 * deviations cannot show this error, but those of the operators that were hit can: a stop hits any
 * operator with the probability of its share of the CPU time. So each stop in a window also adds
 * to the variances of the others:
 *
 *     the square of the stop, times the operator's share of the self time without stops
 *
 * The self time of an outer range is its duration minus the estimate for the ranges inside it, so
 * it has the error of their share too.
 *
 * Three rules keep the stated errors from growing without reason:
 *
 * 1. Time counts as stopped only as far as waiting is certain: the self time of the ranges in a
 *    window minus the CPU time of the threads meanwhile. It is assigned to operators in proportion
 *    to the squares of their excess, the self time in the window beyond the usual, because a stop
 *    is much longer than the rest; none gets more than its excess. Operators whose calls vary
 *    without waiting therefore change nothing for the others.
 * 2. Some operators wait by themselves, for a disk or a lock. From a single wait this cannot be
 *    told from a stop, so one counts. Later ones of the same operator count only while it has had
 *    at most twice its share of all stops: an operator that waits more often than stops would hit
 *    it keeps its waits to itself.
 * 3. An operator that was hit states its own deviation, which may be more than its share. Later
 *    shares are then reduced by up to a half, until the two are even. Not by all: the variance of
 *    a short interval is a difference, and must contain the stops of that interval.
 *
 * Simulations: tests/native/test_interruption.c. This code is arithmetic; recorder/variance.c is
 * its caller. All amounts are estimates: multiplied by the windows' weights, in ticks.
 */
#ifndef OPSCOPE_RECORDER_INTERRUPTION_H
#define OPSCOPE_RECORDER_INTERRUPTION_H

/* Of one operator, or of all operators of a phase. */
typedef struct opscope__interrupted {
    double stopped; /* self time in stops and waits */
    double shared;  /* the sum of its stops' squares, as far as they count for the others */
    double ahead;   /* what its own stops have added to its variance beyond its share */
} opscope__interrupted;

/* The stopped part of an operator's excess, which is not negative. `waited`: the certain waiting
 * of the whole window; `squares`: the sum of the squares of all operators' excess. */
double opscope__interruption_part(double excess, double waited, double squares);

/* Counts a stop of that operator; `share`: of the self time without stops; `all_shared`: the sum of
 * `shared` over all operators so far. Returns the increase of `shared`. */
double opscope__interruption_count(opscope__interrupted *of, double share, double all_shared,
                                   double stopped);

/* After all stops of a window are counted: what its variance increases by, beyond its own
 * deviations. `own`, `all`: the increase of `shared` of this operator and of all. */
double opscope__interruption_variance(opscope__interrupted *of, double share, double own,
                                      double all);

#endif
