/* recorder/window_length.h -- how long the next window is.
 *
 * A window meets the operators that begin in it. Windows of milliseconds meet few of those that
 * take tens of milliseconds, and to record them costs next to nothing. Therefore a window is longer
 * than planned as long as recording in windows takes less than 0.05 % of the program's CPU time: up
 * to a fifth of the period, and to 50 ms. The limit is for a program that turns from long operators
 * to many small ones: then one window costs what a long window of them does, up to half of its
 * length, and the next ones are shorter.
 *
 * A program that waits for a processor, or for something else, does less in a window. Beside four
 * busy processes for each processor, which the kernel lets run for milliseconds at a time, most
 * windows of 2 ms met nothing, and those that did had not warmed up. Therefore all parts of a
 * window are longer by as much as the program used less than one processor over the last windows:
 * up to five times. They cost no more than windows of a program that does not wait. A program that
 * does almost nothing has windows as planned, for the same reason as above.
 *
 * A window that warmed up for long (recorder/warm_up.h) is at least as long as its warm-up. Both
 * cost alike, so that for the same cost such windows are rarer, and meet more: warm-ups of 5 ms
 * before windows of 2 ms took most of what recording may cost.
 *
 * The length depends on earlier windows only, so that estimates stay unbiased: a window that ended
 * once it has met an operator would meet too many of those after long ones.
 *
 * This code is arithmetic: no clock, no lock. Its caller is recorder/window_cycle.c.
 */
#ifndef OPSCOPE_RECORDER_WINDOW_LENGTH_H
#define OPSCOPE_RECORDER_WINDOW_LENGTH_H

/* All in ns. */
typedef struct opscope__window_length {
    double planned, limit;
    double now;       /* of the next window */
    double cost, cpu; /* of recording in a window, and of the program in a period: means over the
                         last windows, as if all had been as long as the next one */
    double wall;      /* of a period: likewise */
    double count;     /* of those windows */
    double stretch;   /* by which all parts of the next window are longer than planned */
} opscope__window_length;

/* Starts another plan, with windows of the planned length; if only the period is another, what is
 * known of the program stays known. Returns the next window's length divided by that of the last
 * plan's; 1 if this is the first plan. */
double opscope__window_length_plan(opscope__window_length *length, double window_ns,
                                   double period_ns);
/* After a window. `cost`: of recording in it, in CPU time; `cpu`: the program's, from the end of
 * the last window to the end of this one; `wall`: the time between them; `warm_up`: of its
 * warm-up. Returns the next one's length divided by this one's. */
double opscope__window_length_note(opscope__window_length *length, double cost, double cpu,
                                   double wall, double warm_up);

#endif
