/* record/refusal.c -- see record/refusal.h. A process that attaches writes its reasons in Python; the
 * child of a fork begins its segment in the middle of its work, where there is none to ask. */
#define _GNU_SOURCE
#include "record/refusal.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "opscope/status.h"
#include "record/identity.h"

/* As much of a link as tmpfs keeps in the inode: it takes no room where there is none. */
enum { TARGET_BYTES = 128, PATH_BYTES = 512 };

void opscope__refusal_write(const char *directory, int status)
{
    char target[TARGET_BYTES], path[PATH_BYTES], unfinished[PATH_BYTES + 1];
    opscope__identity self;
    opscope__identity_read(&self);
    int bytes = snprintf(target, sizeof target, "%lld:recorder:forked child cannot record: %s",
                         (long long)time(NULL), opscope_status_text(status));
    int path_bytes = snprintf(path, sizeof path, "%s/%llu-%llu.why", directory,
                              (unsigned long long)self.pid,
                              (unsigned long long)self.process_start);
    if (bytes < 0 || path_bytes < 0 || path_bytes >= PATH_BYTES) {
        return;
    }
    (void)snprintf(unfinished, sizeof unfinished, "%s~", path);
    if (symlink(target, unfinished) == 0 && rename(unfinished, path) != 0) {
        (void)unlink(unfinished);
    }
}
