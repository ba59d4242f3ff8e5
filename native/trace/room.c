/* trace/room.c -- the size limit of a trace: the free space of the file system and the control
 * group, the process's own limit, and the space that other files of the directory use or reserve
 * (segment/room.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "opscope/status.h"
#include "segment/room.h"
#include "trace/trace.h"

/* ---- free space ------------------------------------------------------------------------------ */

static uint64_t free_in_file_system(int fd)
{
    struct statvfs info;
    if (fstatvfs(fd, &info) != 0 || info.f_blocks == 0) {
        return UINT64_MAX; /* a memfd, or a tmpfs without a limit */
    }
    return (uint64_t)info.f_bavail * info.f_frsize;
}

/* The number in a file of the control group. UINT64_MAX if it says "max" or cannot be read. */
static uint64_t read_number(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return UINT64_MAX;
    }
    ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    return bytes > 0 && end != text && errno == 0 ? number : UINT64_MAX;
}

/* Memory that this process's control group may still use (cgroup v2); the limits of its parents are
 * not considered. Shared memory counts there, and the kernel kills processes beyond the limit. */
static uint64_t free_in_control_group(void)
{
    char line[256] = "", path[320];
    FILE *file = fopen("/proc/self/cgroup", "re");
    bool is_found = false;
    while (file != NULL && !is_found && fgets(line, sizeof line, file) != NULL) {
        is_found = strncmp(line, "0::", 3) == 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    if (!is_found) {
        return UINT64_MAX;
    }
    line[strcspn(line, "\n")] = '\0';
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", line + 3);
    uint64_t most = read_number(path);
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", line + 3);
    uint64_t current = read_number(path);
    return most == UINT64_MAX || current == UINT64_MAX ? UINT64_MAX
           : most > current                            ? most - current
                                                       : 0;
}

static uint64_t at_most_half(uint64_t bytes, uint64_t free_bytes)
{
    return free_bytes / 2 < bytes ? free_bytes / 2 : bytes;
}

/* ---- a single trace -------------------------------------------------------------------------- */

int opscope__trace_find_size(int fd, uint64_t wanted, uint64_t *out)
{
    uint64_t bytes = at_most_half(wanted, free_in_file_system(fd));
    if (bytes < OPSCOPE_TRACE_LEAST_BYTES) {
        return OPSCOPE_ERR_NO_SPACE;
    }
    bytes = at_most_half(bytes, free_in_control_group());
    if (bytes < OPSCOPE_TRACE_LEAST_BYTES) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
        return OPSCOPE_ERR_NO_SPACE; /* a larger file would raise SIGXFSZ */
    }
    *out = OPSCOPE_TRACE_HEADER_BYTES + (bytes - OPSCOPE_TRACE_HEADER_BYTES) /
                                            OPSCOPE_TRACE_BLOCK_UNIT * OPSCOPE_TRACE_BLOCK_UNIT;
    return OPSCOPE_OK;
}

/* ---- one of several in a directory ----------------------------------------------------------- */

/* Space that other traces and segments have reserved counts as used, in the control group too. */
static int share(int directory_fd, uint64_t wanted, uint64_t *out)
{
    struct opscope__room room;
    int status = opscope__room_read(directory_fd, &room);
    if (status != OPSCOPE_OK) {
        return status;
    }
    const uint64_t bytes = opscope__room_trace(&room, wanted);
    if (bytes < OPSCOPE_TRACE_LEAST_BYTES) {
        return OPSCOPE_ERR_NO_SPACE;
    }
    const uint64_t promised = room.trace_bytes, left = free_in_control_group();
    *out = at_most_half(bytes, left == UINT64_MAX ? left : left > promised ? left - promised : 0);
    return *out < OPSCOPE_TRACE_LEAST_BYTES ? OPSCOPE_ERR_NO_MEMORY : OPSCOPE_OK;
}

int opscope__trace_share(int directory_fd, int fd, uint64_t wanted, uint64_t *out)
{
    struct opscope__room room;
    struct rlimit limit;
    uint64_t bytes;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < wanted) {
        wanted = limit.rlim_cur; /* a larger file would raise SIGXFSZ */
    }
    int status = share(directory_fd, wanted, &bytes);
    /* The size of the file tells other processes how much it reserves. Several processes may do
     * this at once and all see the same free space, so each checks again once its own size is
     * visible, and takes less if needed. */
    while (status == OPSCOPE_OK) {
        if (ftruncate(fd, (off_t)bytes) != 0) {
            status = OPSCOPE_ERR_IO;
        } else {
            status = opscope__room_read(directory_fd, &room);
        }
        if (status != OPSCOPE_OK || opscope__room_holds(&room)) {
            break;
        }
        bytes /= 2;
        status = bytes < OPSCOPE_TRACE_LEAST_BYTES ? OPSCOPE_ERR_NO_SPACE : OPSCOPE_OK;
    }
    if (status == OPSCOPE_OK) {
        *out = bytes;
    }
    return status;
}
