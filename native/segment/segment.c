/* segment/segment.c -- see segment/segment.h. */
#define _GNU_SOURCE
#include "segment/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "opscope/status.h"
#include "segment/identity.h"
#include "segment/room.h"
#include "segment/sandbox.h"

enum {
    MAPPED_BYTES =
        OPSCOPE_SEGMENT_HEADER_BYTES + OPSCOPE_SEGMENT_CHUNK_LIMIT * OPSCOPE_SEGMENT_CHUNK_BYTES,
    RESERVE_BYTES = 8 * OPSCOPE_SEGMENT_CHUNK_BYTES, /* the file grows in steps of this size */
    /* Chunks that only new tables may take, two each. When names and cells have filled all others,
     * threads that come later still have their ranges counted under `other`. */
    FOR_TABLES = OPSCOPE_SEGMENT_CHUNK_LIMIT / 8,
    PAGE_BYTES = 4096,
    ENTRY_ALIGN = 8,
    ADDRESS_SPACE_LEAST = 1 << 30
};

_Static_assert((int)OPSCOPE__CLOCK_TSC == (int)OPSCOPE_CLOCK_TSC &&
                   (int)OPSCOPE__CLOCK_CNTVCT == (int)OPSCOPE_CLOCK_CNTVCT &&
                   (int)OPSCOPE__CLOCK_MONOTONIC == (int)OPSCOPE_CLOCK_MONOTONIC,
               "the file says it in the clock's own numbers");
_Static_assert(sizeof(opscope_segment_header) <= OPSCOPE_SEGMENT_CONTROL_OFFSET &&
                   OPSCOPE_SEGMENT_CONTROL_OFFSET + sizeof(opscope_control) <=
                       OPSCOPE_SEGMENT_ANSWER_OFFSET &&
                   OPSCOPE_SEGMENT_ANSWER_OFFSET + sizeof(opscope_control_answer) <=
                       OPSCOPE_SEGMENT_HEADER_BYTES,
               "one page");
_Static_assert(sizeof(opscope_chunk) <= OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES, "chunk header");
_Static_assert(sizeof(opscope_cell) == 192 && sizeof(opscope_line) == 64, "whole cache lines");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void opscope__segment_lock(void)
{
    pthread_mutex_lock(&lock);
}

void opscope__segment_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static int status_of_errno(void)
{
    switch (errno) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return OPSCOPE_ERR_NO_SPACE;
    case EROFS:
        return OPSCOPE_ERR_READ_ONLY;
    case EACCES:
    case EPERM:
    case ELOOP:
        return OPSCOPE_ERR_PERMISSION;
    case ENOMEM:
        return OPSCOPE_ERR_NO_MEMORY;
    default:
        return OPSCOPE_ERR_IO;
    }
}

/* The maximum size of a file: growing past RLIMIT_FSIZE would raise SIGXFSZ and end the program. */
static uint64_t size_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < MAPPED_BYTES
               ? limit.rlim_cur / PAGE_BYTES * PAGE_BYTES
               : MAPPED_BYTES;
}

/* Allocates blocks for the next part of the file, from `start`: touching a page without a block
 * would raise SIGBUS. */
static int reserve_in_file(int fd, uint64_t start, uint64_t bytes)
{
    int error;
    do {
        error = posix_fallocate(fd, (off_t)start, (off_t)bytes);
    } while (error == EINTR);
    if (error != 0) {
        errno = error;
        return status_of_errno();
    }
    return OPSCOPE_OK;
}

/* Clears the segment and starts a new epoch, so that no thread uses state of an earlier segment
 * with the next one. Partner of the stores: the loads of threads that record meanwhile. */
static void forget(opscope__segment *segment)
{
    segment->base = NULL;
    segment->reserved_bytes = segment->limit_bytes = 0;
    segment->grows_by_path = false;
    segment->dictionary = NULL;
    opscope__store_relaxed(&segment->is_full, false);
    segment->device = segment->inode = 0;
    segment->path[0] = '\0';
    opscope__store_relaxed(&segment->epoch, segment->epoch + 1);
}

/* ---- the file ------------------------------------------------------------------------------ */

/* Opens the directory, creating it if it is missing; refuses a directory in which other users could
 * create files. */
static int open_directory(const char *path, int *out)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return status_of_errno();
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return status_of_errno();
    }
    struct stat info;
    bool safe = fstat(fd, &info) == 0 &&
                ((info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) ||
                 (info.st_uid == 0 && (info.st_mode & S_ISVTX) != 0));
    if (!safe) {
        close(fd);
        return OPSCOPE_ERR_PERMISSION;
    }
    *out = fd;
    return OPSCOPE_OK;
}

static void fill_header(opscope_segment_header *header, const opscope__identity *identity,
                        const uint8_t *random_id)
{
    opscope__clock clock;
    opscope__clock_start(&clock);
    memcpy(header->magic, "OPSCOPE", sizeof header->magic);
    header->version = OPSCOPE_SEGMENT_VERSION;
    header->header_bytes = OPSCOPE_SEGMENT_HEADER_BYTES;
    header->chunk_bytes = OPSCOPE_SEGMENT_CHUNK_BYTES;
    header->chunk_limit = OPSCOPE_SEGMENT_CHUNK_LIMIT;
    memcpy(header->boot_id, identity->boot_id, sizeof header->boot_id);
    memcpy(header->random_id, random_id, sizeof header->random_id);
    header->pid_namespace = identity->pid_namespace;
    header->pid = identity->pid;
    header->process_start = identity->process_start;
    header->uid = identity->uid;
    header->clock_source = clock.source;
    header->ticks_per_second = clock.ticks_per_second;
    header->anchor_ticks = clock.anchor_ticks;
    header->anchor_unix_ns = clock.anchor_unix_ns;
    header->created_unix_ns = clock.anchor_unix_ns;
}

/* Gives the empty file its size, which promises room to grow, and its first blocks; maps all of
 * it. */
static int map_file(opscope__segment *segment, int fd, uint64_t growth_bytes)
{
    struct stat info;
    const uint64_t limit = size_limit();
    if (limit < RESERVE_BYTES) {
        return OPSCOPE_ERR_NO_SPACE;
    }
    const uint64_t wanted = RESERVE_BYTES + growth_bytes / PAGE_BYTES * PAGE_BYTES;
    const uint64_t size = wanted < limit ? wanted : limit;
    if (ftruncate(fd, (off_t)size) != 0 || fstat(fd, &info) != 0) {
        return status_of_errno();
    }
    void *base = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        return status_of_errno();
    }
    /* The program's core dumps do not need this memory. */
    (void)madvise(base, MAPPED_BYTES, MADV_DONTDUMP);
    int status = opscope__room_populate(base, RESERVE_BYTES);
    if (status == OPSCOPE_ERR_UNSUPPORTED) {
        segment->grows_by_path = true;
        status = reserve_in_file(fd, 0, RESERVE_BYTES);
    }
    if (status != OPSCOPE_OK) {
        munmap(base, MAPPED_BYTES);
        return status;
    }
    segment->base = base;
    segment->reserved_bytes = RESERVE_BYTES;
    segment->limit_bytes = size;
    segment->device = info.st_dev;
    segment->inode = info.st_ino;
    return OPSCOPE_OK;
}

/* True if the lock on the file outlives its descriptor, which is closed now. The mapping keeps the
 * open file, and so the lock, until no process can write into the file any more: until the process
 * ends in any way, calls exec, or maps something else in its place. A child that shares the mapping
 * (by vfork, a raw clone, or fork until it replaces the mapping) could still write, and so keeps
 * the lock. The code tests this, because not every file system and kernel supports it. */
static bool lock_is_held(int directory_fd, const char *name)
{
    int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool is_held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return is_held;
}

/* The file's hidden or published name; the file stays hidden until it is published. */
static int name_file(opscope__segment *segment, const char *directory, bool hidden,
                     const opscope__identity *identity, const uint8_t *random_id)
{
    uint64_t random;
    memcpy(&random, random_id, sizeof random);
    int length = snprintf(segment->path, sizeof segment->path, "%s/%s%llu-%llu-%016llx.seg",
                          directory, hidden ? "." : "", (unsigned long long)identity->pid,
                          (unsigned long long)identity->process_start, (unsigned long long)random);
    return length > 0 && (size_t)length < sizeof segment->path ? OPSCOPE_OK : OPSCOPE_ERR_INVALID;
}

/* Observing takes some 30 MiB of address space: the mapping, a thread's stack, libraries. In a
 * process with a low limit, this could make the process's own next allocation fail. */
static bool has_address_space(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= ADDRESS_SPACE_LEAST;
}

/* Number of ended processes' segments removed for this process's, until one of its headers reports
 * it. */
static uint64_t discarded_count;

/* Allocates blocks first, then checks the room again: see segment/room.h. On failure it removes the
 * file. */
static int make_file(opscope__segment *segment, int directory_fd, bool *is_locked)
{
    const char *name = strrchr(segment->path, '/') + 1;
    struct opscope__room room;
    int status = opscope__room_make(directory_fd, RESERVE_BYTES, &room, &discarded_count);
    if (status != OPSCOPE_OK) {
        return status;
    }
    const uint64_t growth = opscope__room_growth(&room, MAPPED_BYTES - RESERVE_BYTES);
    int fd = openat(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return status_of_errno();
    }
    *is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    status = map_file(segment, fd, growth);
    close(fd);
    if (status == OPSCOPE_OK) {
        status = opscope__room_make(directory_fd, 0, &room, &discarded_count);
    }
    if (status != OPSCOPE_OK) {
        (void)unlinkat(directory_fd, name, 0);
        if (segment->base != NULL) {
            munmap(segment->base, MAPPED_BYTES);
            segment->base = NULL;
        }
    }
    return status;
}

int opscope__segment_create(opscope__segment *segment, const char *directory)
{
    opscope__identity identity;
    uint8_t random_id[16] = {0};
    int directory_fd = -1;
    bool is_locked = false;
    opscope__identity_read(&identity);
    (void)!getrandom(random_id, sizeof random_id, GRND_NONBLOCK);
    forget(segment);

    int status =
        has_address_space() ? open_directory(directory, &directory_fd) : OPSCOPE_ERR_LIMITED;
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = name_file(segment, directory, true, &identity, random_id);
    if (status == OPSCOPE_OK) {
        status = make_file(segment, directory_fd, &is_locked);
    }
    if (status == OPSCOPE_OK) {
        opscope_segment_header *header = opscope__segment_header(segment);
        fill_header(header, &identity, random_id);
        header->discarded_count = discarded_count;
        discarded_count = 0;
        if (is_locked && lock_is_held(directory_fd, strrchr(segment->path, '/') + 1)) {
            header->liveness = OPSCOPE_LIVENESS_LOCK;
        }
    }
    close(directory_fd);
    return status;
}

int opscope__segment_publish(opscope__segment *segment)
{
    char hidden[sizeof segment->path];
    memcpy(hidden, segment->path, sizeof hidden);
    char *name = strrchr(segment->path, '/') + 1;
    memmove(name, name + 1, strlen(name)); /* removes the dot */
    /* Partner: the reader, which loads `state` before it trusts the rest of the header. */
    opscope__store_release(&opscope__segment_header(segment)->state, OPSCOPE_SEGMENT_LIVE);
    if (rename(hidden, segment->path) != 0) {
        int status = status_of_errno();
        memcpy(segment->path, hidden, sizeof hidden); /* for the code that removes the file */
        return status;
    }
    return OPSCOPE_OK;
}

/* ---- chunks -------------------------------------------------------------------------------- */

/* Kernels before 5.14 reserve blocks only through a descriptor. If a filter of system calls is new
 * since the recorder's start, opening the file may end the process: the segment then does not
 * grow. */
static int grow_by_path(const opscope__segment *segment, uint64_t bytes)
{
    if (opscope__sandbox_is_new()) {
        return OPSCOPE_ERR_PERMISSION;
    }
    int fd = open(segment->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return status_of_errno();
    }
    struct stat info;
    int status = OPSCOPE_ERR_IO;
    if (fstat(fd, &info) == 0 && info.st_dev == segment->device && info.st_ino == segment->inode) {
        status = reserve_in_file(fd, segment->reserved_bytes, bytes);
    }
    close(fd);
    return status;
}

/* Uses madvise(2), which the process called before its first recorded range. */
static int grow(opscope__segment *segment)
{
    const uint64_t left = segment->limit_bytes - segment->reserved_bytes;
    const uint64_t bytes = left < RESERVE_BYTES ? left : RESERVE_BYTES;
    if (bytes == 0) {
        return OPSCOPE_ERR_NO_SPACE;
    }
    int status = segment->grows_by_path
                     ? grow_by_path(segment, bytes)
                     : opscope__room_populate(segment->base + segment->reserved_bytes, bytes);
    if (status == OPSCOPE_OK) {
        segment->reserved_bytes += bytes;
    }
    return status;
}

opscope_chunk *opscope__segment_add_chunk(opscope__segment *segment, uint32_t kind, uint32_t table,
                                          uint32_t first)
{
    const bool begins_table =
        first == 0 && (kind == OPSCOPE_CHUNK_CELLS || kind == OPSCOPE_CHUNK_LINES);
    if (segment->base == NULL || (segment->is_full && !begins_table)) {
        return NULL;
    }
    opscope_segment_header *header = opscope__segment_header(segment);
    uint32_t index = header->chunk_count;
    uint64_t offset = OPSCOPE_SEGMENT_HEADER_BYTES + (uint64_t)index * OPSCOPE_SEGMENT_CHUNK_BYTES;
    bool fits = index < OPSCOPE_SEGMENT_CHUNK_LIMIT - (begins_table ? 0 : FOR_TABLES);
    while (fits && offset + OPSCOPE_SEGMENT_CHUNK_BYTES > segment->reserved_bytes) {
        fits = grow(segment) == OPSCOPE_OK;
    }
    if (!fits) {
        opscope__store_relaxed(&segment->is_full, true);
        return NULL;
    }
    opscope_chunk *chunk = (opscope_chunk *)(void *)(segment->base + offset);
    chunk->kind = kind;
    chunk->table = table;
    chunk->first = first;
    /* Partner: the reader of the file; the chunk's header is complete before the chunk is
     * counted. */
    opscope__store_release(&header->chunk_count, index + 1);
    return chunk;
}

bool opscope__segment_add_entry(opscope__segment *segment, const opscope_entry *entry,
                                const char *text)
{
    const uint32_t room = OPSCOPE_SEGMENT_CHUNK_BYTES - OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES;
    const uint32_t needed = (uint32_t)sizeof(opscope_entry) +
                            (entry->bytes + ENTRY_ALIGN - 1) / ENTRY_ALIGN * ENTRY_ALIGN;
    opscope_chunk *chunk = segment->dictionary;
    if (needed > room) {
        return false;
    }
    if (chunk == NULL || chunk->used + needed > room) {
        chunk = opscope__segment_add_chunk(segment, OPSCOPE_CHUNK_DICTIONARY, 0, 0);
        if (chunk == NULL) {
            return false;
        }
        segment->dictionary = chunk;
    }
    char *at = (char *)chunk + OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES + chunk->used;
    *(opscope_entry *)(void *)at = *entry;
    memcpy(at + sizeof(opscope_entry), text, entry->bytes);
    /* Partner: the reader of the file; an entry is complete before it is counted. */
    opscope__store_release(&chunk->used, chunk->used + needed);
    return true;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Other threads may still end ranges in this memory. They use the file's pages or the new ones: a
 * page fault waits in the kernel until the mapping is replaced. It is not a call of mmap(), because
 * ThreadSanitizer takes that for a write, with which those threads would race. */
void opscope__segment_abandon(opscope__segment *segment)
{
    if (segment->base != NULL) {
        (void)syscall(SYS_mmap, segment->base, (size_t)MAPPED_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1L, 0L);
    }
    forget(segment);
}

void opscope__segment_close(opscope__segment *segment, bool discard)
{
    /* Partner: the reader of the file; the file has everything counted before. */
    opscope__store_release(&opscope__segment_header(segment)->state, OPSCOPE_SEGMENT_CLOSED);
    if (discard) {
        unlink(segment->path);
    }
    opscope__segment_abandon(segment);
}
