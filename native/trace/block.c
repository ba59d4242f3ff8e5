/* trace/block.c -- the tracer's file: how it is mapped, and how threads take blocks of it.
 *
 * No thread touches a page without memory behind it: that raises SIGBUS and ends the program. Pages
 * are allocated before a block is used, with madvise(2), which fails if memory runs out. The start
 * of a trace allocates the first blocks; a thread allocates the others as it takes them. Kernels
 * before 5.14 lack this madvise; there the start reserves the whole file. A trace never takes more
 * than half of the free space of the file system and the control group: the rest is left to the
 * program. segment/room.h says how the traces of a directory share the space.
 */
#define _GNU_SOURCE
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "base/hot.h"
#include "segment/room.h"

enum { READY_BYTES = 4 << 20 };

/* ---- the mapping --------------------------------------------------------------------------------- */

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
    int status = opscope__trace_find_size(fd, wanted_bytes, &bytes);
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
    status = opscope__room_populate(base, OPSCOPE_TRACE_HEADER_BYTES);
    if (status == OPSCOPE_ERR_UNSUPPORTED) {
        is_reserved = true;
        status = reserve_all(fd, bytes);
    }
    if (status != OPSCOPE_OK) {
        munmap(base, bytes);
        return status;
    }
    /* The caller that starts the trace allocates what a short trace needs, so that the traced
     * threads need not. */
    const uint64_t ready = bytes / 2 < READY_BYTES ? bytes / 2 : READY_BYTES;
    trace->ready_bytes = OPSCOPE_TRACE_HEADER_BYTES;
    if (is_reserved || opscope__room_populate(base, ready) == OPSCOPE_OK) {
        trace->ready_bytes = is_reserved ? bytes : ready;
    }
    /* The lock lasts as long as this mapping can write to the file: a process that removes old
     * files then leaves it alone. */
    (void)flock(fd, LOCK_EX | LOCK_NB);
    trace->base = base;
    trace->limit_bytes = bytes;
    return OPSCOPE_OK;
}

void opscope__trace_let_go(struct opscope__trace *trace)
{
    /* A thread may be in the middle of a store: it goes to the old memory or to the new. A raw
     * system call, because ThreadSanitizer treats the C library's mmap as a store to all of the
     * memory, and reports a race. */
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

/* The offset of a block of at most *bytes; 0 if the file is full. Near the end, blocks get smaller,
 * so that the rest is used. */
static uint64_t claim(struct opscope__trace *trace, uint64_t *bytes)
{
    const uint64_t room = trace->limit_bytes - OPSCOPE_TRACE_HEADER_BYTES;
    /* Relaxed: no other memory depends on it. It only grows, and stays far from overflowing. */
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

/* Tells the reader of the file, its partner, how far to read. The value only grows: if threads take
 * blocks at once, a late one must not hide the blocks of the others. */
static void show_claimed(struct opscope__trace *trace, uint64_t bytes)
{
    uint64_t *shown = &opscope__trace_header(trace)->claimed_bytes;
    uint64_t seen = opscope__load_relaxed(shown);
    while (seen < bytes && !opscope__replace_relaxed(shown, &seen, bytes)) {
    }
}

bool OPSCOPE__COLD opscope__trace_block_open(struct opscope__trace *trace,
                                             struct opscope__trace_thread *state,
                                             uint64_t thread_id)
{
    const uint64_t taken_ticks = opscope__ticks();
    const int errno_before = errno; /* the program may be about to read it */
    uint64_t bytes = state->block_bytes;
    uint64_t offset = claim(trace, &bytes);
    if (offset == 0 || (offset + bytes > trace->ready_bytes &&
                        opscope__room_populate(trace->base + offset, bytes) != OPSCOPE_OK)) {
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
    /* Partner: the reader of the file, which sees only complete blocks. */
    opscope__store_release(&block->bytes, bytes);
    return true;
}
