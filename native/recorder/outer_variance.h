/* recorder/outer_variance.h -- the uncertainty of the self times of outer ranges.
 *
 * Outer ranges are always recorded: their calls and totals are exact. Their self times are their
 * durations minus the windows' estimates for the ranges inside, and have the error of these
 * estimates. For each outer range the recorder knows the estimate for the ranges inside and the
 * number of windows meanwhile: the square of the first divided by the second is the variance of
 * that many draws, assumed to be alike. It is added when the outer range ends. It is too large
 * rather than too small, because it ignores the work of the windows.
 */
#ifndef OPSCOPE_RECORDER_OUTER_VARIANCE_H
#define OPSCOPE_RECORDER_OUTER_VARIANCE_H

#include <stdint.h>

/* Call it when an outer range of that key ends, on any thread, without locks. */
void opscope__outer_variance_add(uint64_t key, double self_ticks_squared);
/* The variance of the key's self time, in ticks squared. */
double opscope__outer_variance(uint64_t key);
/* A new segment begins. */
void opscope__outer_variances_forget(void);

#endif
