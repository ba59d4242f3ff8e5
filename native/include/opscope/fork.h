/* opscope/fork.h -- run a function as a task on a pool of threads; wait for it.
 *
 * The idea: fork captures the caller's state (opscope/debug_info.h) and the task runs within it, so
 * its ranges carry the caller's labels and local callbacks. A thread that waits for a task that has
 * not begun runs it itself, so tasks may fork and wait to any depth. A task must not wait for
 * itself.
 *
 * Threads: any. The pool starts at the first fork. Forks of the process: the child starts with an
 * empty pool; waiting there for an unfinished task of the parent gives ERR_LOST.
 *
 *     opscope_future *future;
 *     opscope_fork(task, arg, &future);
 *     int result;
 *     opscope_wait(future, &result);
 *     opscope_future_release(future);
 */
#ifndef OPSCOPE_FORK_H
#define OPSCOPE_FORK_H

#include <stdbool.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

typedef struct opscope_future opscope_future;

/* A task: returns OPSCOPE_OK or a code of its own, which opscope_wait passes on. */
typedef int (*opscope_task)(void *arg);

OPSCOPE_API int opscope_fork(opscope_task task, void *arg, opscope_future **out);
/* Returns OPSCOPE_OK once the task has ended, with the task's result in *result. */
OPSCOPE_API int opscope_wait(opscope_future *future, int *result);
/* Does the part of opscope_wait that does not block: runs the task on this thread if it has not
 * begun. ERR_BUSY while another thread runs it. For callers that wait in their own way. */
OPSCOPE_API int opscope_future_run(opscope_future *future);
OPSCOPE_API bool opscope_future_done(const opscope_future *future);
OPSCOPE_API void opscope_future_release(opscope_future *future);

typedef void (*opscope_piece)(int index, void *arg);

/* Calls piece once for each index from 0 to count - 1, on this thread and on the pool's threads
 * that are free at that moment. Returns when all calls have returned. For loops that open no
 * ranges: a piece carries no state, and must not wait for another piece. */
OPSCOPE_API void opscope_split(int count, opscope_piece piece, void *arg);

/* The maximum number of threads in the pool; the default is the number of processors that this
 * process may use. A change affects threads not yet started; ERR_INVALID outside 1 to 256. */
OPSCOPE_API int opscope_pool_set_threads(int count);
OPSCOPE_API int opscope_pool_threads(void);
/* The number of threads, including this one, that could work now without exceeding the maximum of
 * the pool; at least 1. */
OPSCOPE_API int opscope_pool_free_threads(void);

OPSCOPE_END_DECLS

#endif
