/* recorder/ledger.c -- see recorder/ledger.h. An attaching process writes its reasons from Python;
 * a forked child begins its segment in the middle of its work, where it cannot call Python. */
#define _GNU_SOURCE
#include "recorder/ledger.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "opscope/status.h"
#include "segment/identity.h"

/* tmpfs keeps a link of this length in the inode, so it needs no block on a full file system. */
enum { TARGET_BYTES = 128, PATH_BYTES = 512 };

static bool link_in(const char *directory, const opscope__identity *self, const char *target)
{
    char path[PATH_BYTES], unfinished[PATH_BYTES + 1];
    int bytes = snprintf(path, sizeof path, "%s/%llu-%llu.why", directory,
                         (unsigned long long)self->pid, (unsigned long long)self->process_start);
    if (bytes < 0 || bytes >= PATH_BYTES) {
        return false;
    }
    (void)snprintf(unfinished, sizeof unfinished, "%s~", path);
    if (symlink(target, unfinished) != 0) {
        return false;
    }
    if (rename(unfinished, path) != 0) {
        (void)unlink(unfinished);
        return false;
    }
    return true;
}

/* The directory's parent is writable for all users: names in another user's directory could lead
 * anywhere. */
static bool is_own_directory(const char *path)
{
    struct stat found;
    (void)mkdir(path, 0700);
    return lstat(path, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid() &&
           (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

void opscope__ledger_write(const char *directory, int status)
{
    char target[TARGET_BYTES], fallback[PATH_BYTES];
    opscope__identity self;
    opscope__identity_read(&self);
    (void)snprintf(target, sizeof target, "%lld:recorder:forked child cannot record: %s",
                   (long long)time(NULL), opscope_status_text(status));
    (void)snprintf(fallback, sizeof fallback, "/tmp/opscope-%llu", (unsigned long long)self.uid);
    if (!link_in(directory, &self, target) && is_own_directory(fallback)) {
        (void)link_in(fallback, &self, target);
    }
}
