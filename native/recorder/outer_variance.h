/* recorder/outer_variance.h -- the uncertainty of the self times of outer ranges.
 *
 * Outer ranges are always recorded: their calls and totals are exact. Their self times are their
 * durations minus the windows' estimates for the ranges inside, and have the error of these
 * estimates. Outer ranges directly inside are exact too, and no part of the error. For each outer
 * range the recorder knows the estimate for the other ranges inside and the number of windows
 * meanwhile: the square of the first divided by the second is the variance of that many draws,
 * assumed to be alike. It is added when the outer range ends. It is too large rather than too
 * small, because it ignores the work of the windows.
 */
#ifndef OPSCOPE_RECORDER_OUTER_VARIANCE_H
#define OPSCOPE_RECORDER_OUTER_VARIANCE_H

#include <stdint.h>

/* Of the outer ranges of a key that have ended. */
struct opscope__outer_inside {
    double variance;          /* of their self time, in ticks squared */
    uint64_t exact_ticks;     /* of the outer ranges directly inside them */
    uint64_t estimated_ticks; /* of the others, by windows */
};

/* Call it when an outer range of that key ends that had ranges inside: on any thread, without
 * locks. `estimated_ticks`: of those that windows observed, while the recorder's serial grew by
 * `serials`. */
void opscope__outer_inside_add(uint64_t key, uint64_t exact_ticks, uint64_t estimated_ticks,
                               uint32_t serials);
struct opscope__outer_inside opscope__outer_inside(uint64_t key);
/* A new segment begins. */
void opscope__outer_inside_forget(void);

#endif
