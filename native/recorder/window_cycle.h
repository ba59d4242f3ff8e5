/* recorder/window_cycle.h -- the sequence of windows, as steps.
 *
 * The state does not lie on a thread's stack, so that the driving thread can end in the middle of a
 * window and another one can continue: at a fork (recorder/window.c). A late step does not bias
 * estimates: weights depend on measured times, not on planned ones.
 *
 * One thread at a time, without locks, because steps take those of the segment and the registry.
 */
#ifndef OPSCOPE_RECORDER_WINDOW_CYCLE_H
#define OPSCOPE_RECORDER_WINDOW_CYCLE_H

#include <stdbool.h>
#include <stdint.h>

/* Starts a plan: windows of this length, with this mean period. */
void opscope__cycle_begin(uint64_t window_ns, uint64_t period_ns);
/* The time of the next step, by opscope__monotonic_ns. */
uint64_t opscope__cycle_due_ns(void);
/* Takes the next step: opens the window, begins or ends its counted part, or closes it. */
void opscope__cycle_step(void);
/* Makes the next step due at once. */
void opscope__cycle_hurry(void);
bool opscope__cycle_is_open(void);
/* When to look whether the program works again: UINT64_MAX unless it has done almost nothing for
 * long, and no window is open (recorder/gap.h). */
uint64_t opscope__cycle_look_ns(void);
void opscope__cycle_look(void);
/* Ends the plan: closes an open window at once. The work since the last window stays owed. */
void opscope__cycle_end(void);
/* In a forked child: no window is open, no work is owed. */
void opscope__cycle_fork_child(void);

#endif
