/* segment/sandbox.h -- detects a filter of system calls (seccomp) installed since the recorder's
 * start.
 *
 * Such a filter may end the process at a call that the program itself no longer makes, such as
 * open(2). After its first recorded range the recorder makes only futex, clock_gettime and madvise
 * calls, all of which it made before, and the calls that the C library makes for memory. (The
 * thread that opens windows may take some microseconds longer to begin.) Some operations need other
 * calls: creating the segment of a forked child; starting the thread that opens windows, at the
 * program's first range and after a fork; starting a trace that another process requests; and
 * growing on kernels before 5.14. They call this check first and are skipped if a filter is new.
 * The name of a new thread of PyTorch's, which tells its phase, is read with prctl as well,
 * except where a filter by libseccomp is likely.
 *
 * Nothing tells a filter without a system call. But nearly all programs in Python that install one
 * do so with libseccomp. If that library has been loaded since the recorder's start, a filter is
 * taken for new, whether it is one or not.
 *
 * Otherwise the check is itself a system call, prctl(2), on the calling thread, whose filters apply
 * to the operation. A filter of another maker that ends the process at prctl(PR_GET_SECCOMP) ends
 * it at these operations (SECURITY.md). If a filter was in force at the start, as in a container,
 * the check detects a further one only if the program had to set PR_SET_NO_NEW_PRIVS for it, as
 * every program without CAP_SYS_ADMIN must.
 */
#ifndef OPSCOPE_SEGMENT_SANDBOX_H
#define OPSCOPE_SEGMENT_SANDBOX_H

#include <stdbool.h>

#include "opscope/export.h"

/* Call it at the recorder's start: filters in force now are the container's, and do no harm. */
void opscope__sandbox_note(void);
/* True if the calling thread has got a filter since, or may have got one by libseccomp. */
bool opscope__sandbox_is_new(void);
/* The latter, without a system call. */
OPSCOPE_API bool opscope__sandbox_is_likely(void);

/* Before a fork, and in the child: there the loader's list may be locked for ever by a thread that
 * the child does not have, so what was known before the fork counts. */
void opscope__sandbox_fork_prepare(void);
void opscope__sandbox_fork_child(void);

#endif
