/* opscope/status.h -- the codes every function of the library returns.
 *
 * Functions return OPSCOPE_OK or one of the negative codes below; results come back through
 * out parameters, which stand last and are untouched on failure. The library never prints,
 * aborts or sets errno for its caller.
 */
#ifndef OPSCOPE_STATUS_H
#define OPSCOPE_STATUS_H

#include "opscope/export.h"

OPSCOPE_BEGIN_DECLS

enum opscope_status {
    OPSCOPE_OK = 0,
    OPSCOPE_ERR_INVALID = -1,        /* an argument outside its range */
    OPSCOPE_ERR_NO_MEMORY = -2,      /* the allocator said no */
    OPSCOPE_ERR_NOT_FOUND = -3,      /* unknown handle or key */
    OPSCOPE_ERR_FULL = -4,           /* a fixed limit is reached */
    OPSCOPE_ERR_WOULD_DEADLOCK = -5, /* waiting for what the caller itself is inside of */
    OPSCOPE_ERR_NO_SPACE = -6,       /* the file system has no room */
    OPSCOPE_ERR_READ_ONLY = -7,      /* the directory cannot be written */
    OPSCOPE_ERR_PERMISSION = -8,   /* the directory belongs to somebody else, or access is denied */
    OPSCOPE_ERR_IO = -9,           /* another failure of the operating system */
    OPSCOPE_ERR_UNSUPPORTED = -10, /* this machine, version or layout is not one we know */
    OPSCOPE_ERR_BUSY = -11,        /* already running, or already attached */
    OPSCOPE_ERR_LOST = -12,        /* a task that vanished because the process forked */
    OPSCOPE_ERR_CALLBACK = -13,    /* a callback or task reported a failure */
    OPSCOPE_ERR_LIMITED = -14      /* the process needs what it is allowed for itself (ulimit -v) */
};

/* What `status` means, in a few words; never NULL. */
OPSCOPE_API const char *opscope_status_text(int status);

OPSCOPE_END_DECLS

#endif
