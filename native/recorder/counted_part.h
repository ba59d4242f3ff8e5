/* recorder/counted_part.h -- how long the counted part of a window goes on, although a quota of CPU
 * time stops the program in it.
 *
 * A quota lets a program run for some time of each period of the kernel's, mostly 100 ms, and then
 * stops it. A window opens at any moment of the time that it runs. If a stop ended the window, it
 * would meet the time before stops more often than the time after them. A program often does other
 * things there: after a stop its caches are cold, and before one, a thread of BLAS waits, running,
 * for another that has been stopped already. With a quota of a half, windows of 50 ms had 7 % of
 * their time in the first fifth of such a turn, and 33 % in the last one; the calls of products on
 * two threads, beside other load, were 0.81 to 1.08 of the truth, 0.90 on average (11 runs of 20 s;
 * 0.96 alone). So the time of a stop does not count, and the window goes on after it.
 *
 * The driver runs under the same quota. If its timer is as late as only a quota makes it
 * (recorder/gap.h), it was stopped until now, and the program with it. When the stop began is not
 * known, so while a quota is known to stop the program, the timer is set in steps, and a stop began
 * in the middle of one, on average. The length does not depend on what the program does.
 *
 * A window of less than 20 ms ends with a stop. It is a small part of a turn, and of small
 * operators, whose recording is cold again after a stop.
 *
 * This code is arithmetic: no clock, no lock. Its caller is recorder/window_cycle.c.
 */
#ifndef OPSCOPE_RECORDER_COUNTED_PART_H
#define OPSCOPE_RECORDER_COUNTED_PART_H

#include <stdbool.h>
#include <stdint.h>

enum { OPSCOPE__COUNTED_PART_STEP_NS = 5000000, OPSCOPE__COUNTED_PART_LONG_NS = 20000000 };

typedef struct opscope__counted_part {
    uint64_t end_ns;     /* without further stops */
    uint64_t due_ns;     /* of the timer */
    uint64_t allowed_ns; /* by which stops may move the end */
    bool has_steps;
} opscope__counted_part;

/* The part begins at `now_ns`, for so long, in a window of a period of `period_ns`. `has_quota`: a
 * quota is known to stop the program. Returns when to set the timer to. */
uint64_t opscope__counted_part_begin(opscope__counted_part *counted, double length_ns,
                                     double period_ns, bool has_quota, uint64_t now_ns);
/* The timer has woken the driver, at `now_ns`. Returns 0: the part is over; or when to set the
 * timer to. */
uint64_t opscope__counted_part_go_on(opscope__counted_part *counted, uint64_t now_ns);

#endif
