/* recorder/window_compare.h -- a window's comparison of ranges that are counted and ranges that are
 * recorded, for the cost of recording (recorder/cost_compare.h).
 *
 * CPU time and ranges are those of the threads known before the window, while no thread comes:
 * other threads, of a BLAS library for example, may work without any range. Once a thread has come,
 * they are those of all threads. A server with a thread for each request has no others that run
 * ranges. What the recorder needs to begin a thread is in the thread's CPU time only where it
 * records, and is measured there; so it is subtracted.
 *
 * Its caller is recorder/window_cycle.c, for one window after the other.
 */
#ifndef OPSCOPE_RECORDER_WINDOW_COMPARE_H
#define OPSCOPE_RECORDER_WINDOW_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "recorder/moment.h"
#include "recorder/warm_up.h"

typedef struct opscope__window_compare {
    bool is_exact;         /* the counts are */
    uint64_t first, begin; /* ranges counted, at the beginnings of the part's warm-up and of it */
    double count, all;     /* ranges counted in it, and also in its warm-up */
    struct opscope__moment from, to; /* its two ends */
    unsigned busy;                   /* threads that ran ranges in it, and live at its end */
    struct opscope__moment warm;     /* the end of the window's own warm-up */
} opscope__window_compare;

/* The warm-up of the part in which ranges are only counted begins; that part begins; it ends. */
void opscope__window_compare_begin(opscope__window_compare *compare);
void opscope__window_compare_count(opscope__window_compare *compare);
void opscope__window_compare_end(opscope__window_compare *compare);
/* The window's own warm-up has ended at `now`: tells `warm_up` how slow the program was in it. */
void opscope__window_compare_warm_up(opscope__window_compare *compare,
                                     const struct opscope__moment *now, opscope__warm_up *warm_up);
/* Reports the comparison with the part from there to `stop`, whose ranges were recorded. The
 * weights are those of the window. */
void opscope__window_compare_report(const opscope__window_compare *compare,
                                    const struct opscope__moment *stop, double known_weight,
                                    double rest_weight);

#endif
