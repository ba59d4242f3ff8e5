/* segment/sandbox.c -- see segment/sandbox.h. */
#include "segment/sandbox.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>

struct sandbox {
    bool has_filter, has_no_new_privileges;
};

static struct sandbox at_start; /* written under the settings lock, only when the recorder starts */

static struct sandbox now(void)
{
    return (struct sandbox){
        .has_filter = prctl(PR_GET_SECCOMP, 0L, 0L, 0L, 0L) == SECCOMP_MODE_FILTER,
        .has_no_new_privileges = prctl(PR_GET_NO_NEW_PRIVS, 0L, 0L, 0L, 0L) == 1};
}

void opscope__sandbox_note(void)
{
    at_start = now();
}

bool opscope__sandbox_is_new(void)
{
    const struct sandbox found = now();
    return found.has_filter && (!at_start.has_filter ||
                                (found.has_no_new_privileges && !at_start.has_no_new_privileges));
}
