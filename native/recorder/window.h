/* recorder/window.h -- the window driver: a thread that opens and closes windows at random
 * moments. */
#ifndef OPSCOPE_RECORDER_WINDOW_H
#define OPSCOPE_RECORDER_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/export.h"

/* Starts driving, or changes the lengths; with a window of 0, only polls the control block. The
 * first call makes the thread. */
int opscope__window_start(uint64_t window_ns, uint64_t period_ns);
/* Stops the driver: it opens no more windows and does not poll. An open window ends early, and has
 * ended when this returns. The caller holds neither the segment lock nor the registry lock, which
 * this takes. The driver itself may call it between windows. */
void opscope__window_stop(void);

/* For record/observer.c: before any lock is taken, and in the parent after all are released. */
void opscope__window_fork_prepare(void);
void opscope__window_fork_parent(void);
/* Between these two, and in the child with all locks held. */
void opscope__window_lock(void);
void opscope__window_unlock(void);
void opscope__window_fork_child(void);

/* For a call that the kernel refuses to a process with several threads: between these two the main
 * thread's process has no window thread. On another thread, which such a process does not have,
 * they do nothing. */
OPSCOPE_API void opscope__window_pause(void);
OPSCOPE_API void opscope__window_continue(void);

/* For a host with an interpreter that counts the threads of the process after fork() has returned.
 * `defer` runs in the parent's fork handler, on the main thread. It returns true if the host will
 * call opscope__window_resume later; otherwise the thread starts again at once. NULL removes it. */
OPSCOPE_API void opscope__window_defer(bool (*defer)(void));
OPSCOPE_API void opscope__window_resume(void);

#endif
