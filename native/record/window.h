/* record/window.h -- the driver of windows: a thread that opens and closes them at random moments.
 */
#ifndef OPSCOPE_RECORD_WINDOW_H
#define OPSCOPE_RECORD_WINDOW_H

#include <stdint.h>

void opscope__window_lock(void);
void opscope__window_unlock(void);
void opscope__window_fork_child(void);

/* Starts driving, or changes the lengths; with a window of 0, only listens to the control block.
 * The thread is made at the first call. */
int opscope__window_start(uint64_t window_ns, uint64_t period_ns);
/* The driver opens no more windows and does not listen; a window that is open ends early, and has
 * ended when this returns. The caller holds none of the locks that takes: segment, registry. The
 * driver itself may call it between windows. */
void opscope__window_stop(void);

#endif
