/* recorder/variance.h -- the uncertainty of the estimates from windows.
 *
 * A window is one draw: the ranges of an operator observed in it, times its weight, are one
 * contribution to the estimate. Contributions vary for two reasons. First, windows contain more or
 * less work; this amount is known (the work that a window represents, recorder/window_weight.h).
 * Second, the work in them is of different kinds; this is the error. Therefore the contributions of
 * an operator, y, are compared with a line through the origin over the work of their windows, E,
 * and the squared deviations are summed. The sum is computed recursively, so that it only grows and
 * no window has to be kept:
 *
 *     R = sum(y E) / sum(E E)   over the windows before
 *     variance += (y - R E)^2 / (1 + E^2 / sum(E E))
 *
 * This equals the sum of squares around the final line. For n windows it has n - 1 deviations; the
 * second window counts twice, to replace the first, which has none. The ranges of all threads in a
 * window are one contribution, so threads that do similar work do not count as independent.
 *
 * The work that windows do not represent yet is missing from the estimate, R times as much for each
 * operator; its square is added. It becomes smaller later, but its maximum stays, so that a
 * variance only grows: the stated variance is too large rather than too small.
 *
 * Outer ranges are always recorded: their calls and totals are exact. Their self times are their
 * durations minus the windows' estimates for the ranges inside, and have the error of these
 * estimates. For each outer range the recorder knows the estimate for the ranges inside and the
 * number of windows meanwhile: the square of the first divided by the second is the variance of
 * that many draws, assumed to be alike. It is added when the outer range ends. It is too large
 * rather than too small, because it ignores the work of the windows.
 *
 * The window thread computes all of this as a window closes; the hot path is not involved.
 */
#ifndef OPSCOPE_RECORDER_VARIANCE_H
#define OPSCOPE_RECORDER_VARIANCE_H

#include "segment/segment.h"

/* Call it when an outer range of that key ends, on any thread, without locks. */
void opscope__variance_add_outer(uint64_t key, double self_ticks_squared);

/* With the segment lock held, after a window has closed: `work` is the work that it represents,
 * `owed` the work that no window represents yet, both in ns. The contributions are the growth of
 * the segment's cells since the last call. */
void opscope__variance_window(opscope__segment *segment, double work, double owed);

#endif
