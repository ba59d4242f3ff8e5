/* recorder/variance.h -- the uncertainty of the estimates from windows.
 *
 * A window is one draw: the ranges of an operator observed in it, times its weight, are one
 * contribution to the estimate. Contributions vary for two reasons. First, windows contain more or
 * less work; this amount is known (the work that a window represents, recorder/window_weight.h).
 * Second, the work in them is of different kinds; this is the error. Therefore the contributions of
 * an operator, y, are compared with what the windows before predict for the work of this one, E,
 * and the squared deviations are summed, so that the sum only grows and no window has to be kept:
 *
 *     R = sum(y) / sum(E)   over the windows before
 *     variance += (y - R E)^2
 *
 * The first window has no deviation. The second one's is twice as large on average, because its
 * prediction has the error of the first; later ones are larger by the n-th part. Fitting a line
 * through all windows would be wrong: on a crowded processor, a few windows have most of the work,
 * the line passes through them, and their errors disappear. A window with more than four times the
 * work of all before it counts as a first one, by degrees. The ranges of all threads in a window
 * are one contribution, so threads that do similar work do not count as independent.
 *
 * The sum from few windows is uncertain itself. Therefore it is multiplied by 1 + 4 / (n - 1),
 * which makes two standard errors a 95 % interval by Student's distribution. Windows with little
 * work hardly count: n = sum(E)^2 / sum(E E), which is their number if all have the same work. An
 * operator that only few of them meet, an optimizer's in a model with long steps, has the n of
 * those: sum(y)^2 / sum(y y) of its calls, if that is less. One window has no spread: then the
 * standard error is the estimate itself, and between one and two windows a part of it.
 *
 * The work that windows do not represent, or represent too early (recorder/window_weight.h), is
 * missing from the estimate, R times as much for each operator. It changes from window to window,
 * in both directions, so its mean square over the last windows is added. What is missing now is
 * known: the interval that is stated contains it.
 *
 * The parts for few windows and for owed work can become smaller; the agent exports the largest
 * variance so far. They are also stated apart: the variance of what came between two readings is
 * the growth of the sum, and these parts of both readings. Otherwise the part for the first few
 * windows would hide the deviations of many later ones.
 *
 * Outer ranges are always recorded: recorder/outer_variance.h.
 *
 * The same is stated for self times without off-CPU time: recorder/off_cpu.h.
 *
 * Stops by the kernel are rare and hit one operator each, but are an error of all:
 * recorder/interruption.h.
 *
 * The window thread computes all of this as a window closes; the hot path is not involved.
 */
#ifndef OPSCOPE_RECORDER_VARIANCE_H
#define OPSCOPE_RECORDER_VARIANCE_H

#include "segment/segment.h"

struct opscope__variance_window {
    double work;    /* ns of work that the window represents */
    double missing; /* ns of work that the estimates so far may lack, or have too much */
    double busy;    /* ns of CPU time of the threads whose ranges it recorded, from the window's
                       beginning until it closed, times its weight */
};

/* With the segment lock held, after a window has closed. The contributions are the growth of the
 * segment's cells since the last call. */
void opscope__variance_window(opscope__segment *segment,
                              const struct opscope__variance_window *window);

#endif
