/* base/status.c -- the texts for the codes in opscope/status.h. */
#include "opscope/status.h"

const char *opscope_status_text(int status)
{
    switch (status) {
    case OPSCOPE_OK:
        return "ok";
    case OPSCOPE_ERR_INVALID:
        return "invalid argument";
    case OPSCOPE_ERR_NO_MEMORY:
        return "out of memory";
    case OPSCOPE_ERR_NOT_FOUND:
        return "not found";
    case OPSCOPE_ERR_FULL:
        return "a fixed limit was reached";
    case OPSCOPE_ERR_WOULD_DEADLOCK:
        return "called from inside the callback that it waits for";
    case OPSCOPE_ERR_NO_SPACE:
        return "no space";
    case OPSCOPE_ERR_READ_ONLY:
        return "read-only directory";
    case OPSCOPE_ERR_PERMISSION:
        return "permission denied, or the directory belongs to another user";
    case OPSCOPE_ERR_IO:
        return "input/output error";
    case OPSCOPE_ERR_UNSUPPORTED:
        return "not supported here";
    case OPSCOPE_ERR_BUSY:
        return "already running";
    case OPSCOPE_ERR_LOST:
        return "the task was lost when the process forked";
    case OPSCOPE_ERR_CALLBACK:
        return "a callback or task failed";
    case OPSCOPE_ERR_LIMITED:
        return "less than 1 GiB of address space (ulimit -v)";
    default:
        return "unknown status";
    }
}
