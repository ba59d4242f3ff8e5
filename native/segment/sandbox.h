/* segment/sandbox.h -- detects a filter of system calls (seccomp) installed since the recorder's
 * start.
 *
 * Such a filter may end the process at a call that the program itself no longer makes, such as
 * open(2). After its first recorded range the recorder makes only futex, clock_gettime and madvise
 * calls, all of which it made before, and the calls that the C library makes for memory. (The
 * thread that opens windows may take some microseconds longer to begin.) Three operations need to
 * open files: creating the segment of a forked child, starting a trace that another process
 * requests, and growing on kernels before 5.14. They call this check first and are skipped if a
 * filter is new.
 *
 * The check is itself a system call, prctl(2), on the calling thread, whose filters apply to the
 * operation. A filter that ends the process at prctl(PR_GET_SECCOMP) ends it at these three
 * operations. If a filter was in force at the start, as in a container, the check detects a further
 * one only if the program had to set PR_SET_NO_NEW_PRIVS for it, as every program without
 * CAP_SYS_ADMIN must.
 */
#ifndef OPSCOPE_SEGMENT_SANDBOX_H
#define OPSCOPE_SEGMENT_SANDBOX_H

#include <stdbool.h>

/* Call it at the recorder's start: filters in force now are the container's, and do no harm. */
void opscope__sandbox_note(void);
/* True if the calling thread has got a filter since. */
bool opscope__sandbox_is_new(void);

#endif
