/* record/trace_block.c -- the tracer's file: how it is mapped, and how threads take blocks of it.
 *
 * Nobody touches a page that has none behind it: that would be SIGBUS, and the end of the program.
 * A block's pages are made before the block is used, by madvise(2), which says no where there is no
 * room: those of the first blocks when the trace starts, the others by the threads that take them;
 * kernels before 5.14 do not know that way, and have the whole file reserved at the start. Either
 * way no more is taken than half of what the file system and the control group have free: the
 * rest is the program's.
 */
#define _GNU_SOURCE
#include "record/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "base/hot.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { READY_BYTES = 4 << 20 };

/* ---- how much ----------------------------------------------------------------------------------- */

static uint64_t free_in_file_system(int fd)
{
    struct statvfs info;
    if (fstatvfs(fd, &info) != 0 || info.f_blocks == 0) {
        return UINT64_MAX; /* a memfd, or a tmpfs without a limit */
    }
    return (uint64_t)info.f_bavail * info.f_frsize;
}

/* The number in a file of the control group; UINT64_MAX for "max" and where there is none. */
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

/* Memory that this process's control group may still use (cgroup v2); what its parents allow is
 * theirs to see to. Shared memory counts there, and beyond it processes are killed. */
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

static int find_size(int fd, uint64_t wanted, uint64_t *out)
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
        return OPSCOPE_ERR_NO_SPACE; /* growing beyond it would be SIGXFSZ */
    }
    *out = OPSCOPE_TRACE_HEADER_BYTES + (bytes - OPSCOPE_TRACE_HEADER_BYTES) /
                                            OPSCOPE_TRACE_BLOCK_UNIT * OPSCOPE_TRACE_BLOCK_UNIT;
    return OPSCOPE_OK;
}

/* ---- the mapping --------------------------------------------------------------------------------- */

/* Whether the pages are there to be written, now. */
static bool populate(char *start, uint64_t bytes)
{
    int result;
    do {
        result = madvise(start, bytes, MADV_POPULATE_WRITE);
    } while (result != 0 && (errno == EAGAIN || errno == EINTR));
    return result == 0;
}

static int reserve_all(int fd, uint64_t bytes)
{
    int error;
    do {
        error = posix_fallocate(fd, 0, (off_t)bytes);
    } while (error == EINTR);
    return error == 0 ? OPSCOPE_OK : OPSCOPE_ERR_NO_SPACE;
}

int opscope__trace_map(struct opscope__trace *trace, int fd, uint64_t wanted_bytes)
{
    uint64_t bytes;
    bool is_reserved = false;
    int status = find_size(fd, wanted_bytes, &bytes);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (ftruncate(fd, (off_t)bytes) != 0) {
        return OPSCOPE_ERR_IO;
    }
    char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        return errno == ENOMEM ? OPSCOPE_ERR_NO_MEMORY : OPSCOPE_ERR_IO;
    }
    (void)madvise(base, bytes, MADV_DONTDUMP);
    if (!populate(base, OPSCOPE_TRACE_HEADER_BYTES)) {
        is_reserved = errno == EINVAL;
        status = is_reserved ? reserve_all(fd, bytes) : OPSCOPE_ERR_NO_SPACE;
    }
    if (status != OPSCOPE_OK) {
        munmap(base, bytes);
        return status;
    }
    /* What a short trace needs is made ready by whoever starts it, rather than by the threads it
     * traces. */
    const uint64_t ready = at_most_half(READY_BYTES, bytes);
    trace->ready_bytes = OPSCOPE_TRACE_HEADER_BYTES;
    if (is_reserved || populate(base, ready)) {
        trace->ready_bytes = is_reserved ? bytes : ready;
    }
    /* While it can be written to by this mapping, whoever comes to clean up finds it locked. */
    (void)flock(fd, LOCK_EX | LOCK_NB);
    trace->base = base;
    trace->limit_bytes = bytes;
    return OPSCOPE_OK;
}

void opscope__trace_let_go(struct opscope__trace *trace)
{
    /* Threads may be in the middle of a store: it goes to the one memory or the other. Not by the C
     * library, as ThreadSanitizer takes its mmap for a store to all of it, and so for a race. */
    (void)syscall(SYS_mmap, trace->base, trace->limit_bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0L);
}

void opscope__trace_unmap(struct opscope__trace *trace)
{
    if (trace->base != NULL) {
        munmap(trace->base, trace->limit_bytes);
    }
}

/* ---- blocks -------------------------------------------------------------------------------------- */

/* The place of a block of at most *bytes; 0 where there is none. What is left is given out in small
 * blocks rather than not at all. */
static uint64_t claim(struct opscope__trace *trace, uint64_t *bytes)
{
    const uint64_t room = trace->limit_bytes - OPSCOPE_TRACE_HEADER_BYTES;
    /* No other memory hangs on it: relaxed. It only grows, and stays far from overflowing. */
    uint64_t left = room - opscope__load_relaxed(&trace->claimed_bytes);
    while (*bytes > OPSCOPE_TRACE_BLOCK_UNIT && *bytes > left) {
        *bytes /= 2;
    }
    if (left > room || *bytes > left) {
        return 0;
    }
    uint64_t offset = opscope__add_relaxed(&trace->claimed_bytes, *bytes);
    return offset + *bytes <= room ? OPSCOPE_TRACE_HEADER_BYTES + offset : 0;
}

/* Tells the reader of the file, its partner, to look as far as there. Only ever further: of threads
 * that take blocks at once, one that is late would take the others' out of its sight. */
static void show_claimed(struct opscope__trace *trace, uint64_t bytes)
{
    uint64_t *shown = &opscope__trace_header(trace)->claimed_bytes;
    uint64_t seen = opscope__load_relaxed(shown);
    while (seen < bytes && !__atomic_compare_exchange_n(shown, &seen, bytes, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED)) {
    }
}

bool OPSCOPE__SELDOM opscope__trace_block_open(struct opscope__trace *trace,
                                               struct opscope__trace_thread *state,
                                               uint64_t thread_id)
{
    const uint64_t taken_ticks = opscope__ticks();
    const int errno_before = errno; /* the program's: it may be about to look at it */
    uint64_t bytes = state->block_bytes;
    uint64_t offset = claim(trace, &bytes);
    if (offset == 0 ||
        (offset + bytes > trace->ready_bytes && !populate(trace->base + offset, bytes))) {
        errno = errno_before;
        state->is_full = true;
        state->limit = state->end = state->next;
        return false;
    }
    show_claimed(trace, offset - OPSCOPE_TRACE_HEADER_BYTES + bytes);
    opscope_trace_block *block = (opscope_trace_block *)(void *)(trace->base + offset);
    block->thread_id = thread_id;
    block->system_id = (uint64_t)syscall(SYS_gettid);
    prctl(PR_GET_NAME, block->thread_name);
    block->taken_ticks = taken_ticks;
    errno = errno_before;
    state->block = block;
    state->block_bytes =
        bytes < OPSCOPE_TRACE_BLOCK_LIMIT ? state->block_bytes * 2 : OPSCOPE_TRACE_BLOCK_LIMIT;
    state->next = (uint64_t *)(void *)(block + 1);
    state->end = state->next + (bytes - sizeof *block) / sizeof *state->next;
    state->limit = state->labels_are_stale ? state->next : state->end;
    block->ready_ticks = opscope__ticks();
    /* Partner: the reader of the file: a block is whole before it is there. */
    opscope__store_release(&block->bytes, bytes);
    return true;
}
