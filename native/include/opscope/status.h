/* opscope/status.h -- the status codes of the library's functions.
 *
 * Functions return OPSCOPE_OK or one of the negative codes below. They store results through out
 * parameters, which come last and stay untouched on failure. The library never prints, aborts or
 * sets errno for its caller.
 */
#ifndef OPSCOPE_STATUS_H
#define OPSCOPE_STATUS_H

#include "opscope/export.h"

OPSCOPE_BEGIN_DECLS

enum opscope_status {
    OPSCOPE_OK = 0,
    OPSCOPE_ERR_INVALID = -1,        /* an argument outside its range */
    OPSCOPE_ERR_NO_MEMORY = -2,      /* out of memory */
    OPSCOPE_ERR_NOT_FOUND = -3,      /* unknown handle or key */
    OPSCOPE_ERR_FULL = -4,           /* a fixed limit was reached */
    OPSCOPE_ERR_WOULD_DEADLOCK = -5, /* the caller waits for a callback that it is inside */
    OPSCOPE_ERR_NO_SPACE = -6,       /* no space in the file system */
    OPSCOPE_ERR_READ_ONLY = -7,      /* the directory is not writable */
    OPSCOPE_ERR_PERMISSION = -8,   /* the directory belongs to another user, or access is denied */
    OPSCOPE_ERR_IO = -9,           /* any other failure of the operating system */
    OPSCOPE_ERR_UNSUPPORTED = -10, /* unsupported machine, version or layout */
    OPSCOPE_ERR_BUSY = -11,        /* already running, or already attached */
    OPSCOPE_ERR_LOST = -12,     /* the process forked, and the task does not exist in the child */
    OPSCOPE_ERR_CALLBACK = -13, /* a callback or task reported a failure */
    OPSCOPE_ERR_LIMITED = -14   /* the process needs its limited address space itself (ulimit -v) */
};

/* A short text for `status`; never NULL. */
OPSCOPE_API const char *opscope_status_text(int status);

OPSCOPE_END_DECLS

#endif
