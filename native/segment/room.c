/* segment/room.c -- see segment/room.h. */
#define _GNU_SOURCE
#include "segment/room.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "opscope/status.h"
#include "segment/own_files.h"
#include "segment/reclaim.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { SEGMENT_MOST = 16 << 20 };

static const uint64_t MIB = 1 << 20;
/* On a large disk, a quarter would be far more than ended processes need. */
static const uint64_t HELD_LIMIT = (uint64_t)4 << 30;

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* ---- current use --------------------------------------------------------------------------------- */

static void add(const struct opscope__room_file *file, void *context)
{
    struct opscope__room *room = context;
    room->held_bytes += file->held_bytes;
    *(file->is_trace ? &room->trace_bytes : &room->growth_bytes) += file->promised_bytes;
}

static int read_file_system(int directory_fd, struct opscope__room *out)
{
    struct statvfs info;
    if (fstatvfs(directory_fd, &info) != 0) {
        return OPSCOPE_ERR_IO;
    }
    *out = (struct opscope__room){.size_bytes = INT64_MAX, .free_bytes = INT64_MAX};
    if (info.f_blocks != 0) { /* 0: a tmpfs without a limit */
        out->size_bytes = least_of((uint64_t)info.f_blocks * info.f_frsize, INT64_MAX);
        out->free_bytes = least_of((uint64_t)info.f_bavail * info.f_frsize, INT64_MAX);
    }
    return OPSCOPE_OK;
}

int opscope__room_read(int directory_fd, struct opscope__room *out)
{
    struct opscope__room room;
    int status = read_file_system(directory_fd, &room);
    if (status == OPSCOPE_OK) {
        room.is_cut = !opscope__room_scan(directory_fd, add, &room);
        *out = room;
    }
    return status;
}

/* ---- limits --------------------------------------------------------------------------------------- */

/* The limit: 1 / parts of the file system, and at most half of the space that would be free without
 * our files. */
static uint64_t limit(const struct opscope__room *room, uint64_t parts)
{
    return least_of(room->size_bytes / parts, (room->free_bytes + room->held_bytes) / 2);
}

uint64_t opscope__room_excess(const struct opscope__room *room, uint64_t bytes)
{
    return less(room->held_bytes + bytes, least_of(limit(room, 4), HELD_LIMIT));
}

uint64_t opscope__room_growth(const struct opscope__room *room, uint64_t most)
{
    const uint64_t left = less(limit(room, 4) / 2, room->growth_bytes);
    if (room->is_cut) {
        return least_of(left / OPSCOPE__ROOM_FILES, most);
    }
    /* A sixty-fourth of the space left; if that is little, an eighth, up to 1 MiB: the first
     * segments, which may be the only ones, then have room for some hundred operators. */
    const uint64_t few = least_of(left / 8, MIB);
    const uint64_t share = left / 64 > few ? left / 64 : few;
    return least_of(share, most);
}

static uint64_t taken(const struct opscope__room *room)
{
    return room->held_bytes + room->growth_bytes + room->trace_bytes;
}

uint64_t opscope__room_trace(const struct opscope__room *room, uint64_t most)
{
    return least_of(less(limit(room, 2), taken(room)) / 2, most);
}

bool opscope__room_holds(const struct opscope__room *room)
{
    return taken(room) <= limit(room, 2);
}

/* True if all users together use more of the file system than segments may hold. */
static bool is_well_used(const struct opscope__room *room)
{
    return less(room->size_bytes, room->free_bytes) > least_of(limit(room, 4), HELD_LIMIT);
}

static void count(int directory_fd, const char *name, void *context)
{
    (void)directory_fd;
    (void)name;
    ++*(uint64_t *)context;
}

/* Counts the names in the directory: at least our files; false if there are more than the scan
 * limit. On tmpfs the directory's size gives the count (BOGO_DIRENT_SIZE in the kernel's
 * mm/shmem.c, since 2.6); reading all names would take a microsecond each. */
static bool count_names(int directory_fd, uint64_t *out)
{
    enum { NAME_SIZE = 20 };
    struct statfs file_system;
    struct stat info;
    if (fstatfs(directory_fd, &file_system) == 0 && file_system.f_type == TMPFS_MAGIC &&
        fstat(directory_fd, &info) == 0 && info.st_size > 0 && info.st_size % NAME_SIZE == 0) {
        *out = (uint64_t)info.st_size / NAME_SIZE;
        return *out <= OPSCOPE__ROOM_FILES;
    }
    *out = 0;
    return opscope__own_names(directory_fd, count, out);
}

/* The usual case, without reading any file: the space that all users use is below the limit of
 * segments, and growth is sufficient even if every segment grows to its maximum. *room then holds
 * upper bounds. */
static int read_bounds(int directory_fd, uint64_t bytes, struct opscope__room *room, bool *has_room)
{
    uint64_t names = 0;
    int status = read_file_system(directory_fd, room);
    *has_room = false;
    if (status != OPSCOPE_OK || room->free_bytes > room->size_bytes) {
        return status;
    }
    room->held_bytes = room->size_bytes - room->free_bytes;
    if (opscope__room_excess(room, bytes) == 0) {
        room->is_cut = bytes != 0 && !count_names(directory_fd, &names);
        room->growth_bytes = names * SEGMENT_MOST;
        *has_room = !room->is_cut && room->growth_bytes <= limit(room, 4) / 4;
    }
    return status;
}

int opscope__room_make(int directory_fd, uint64_t bytes, struct opscope__room *room,
                       uint64_t *discarded_count)
{
    bool has_room;
    int status = read_bounds(directory_fd, bytes, room, &has_room);
    if (status != OPSCOPE_OK || has_room) {
        return status;
    }
    status = opscope__room_read(directory_fd, room);
    if (status != OPSCOPE_OK) {
        return status;
    }
    const uint64_t excess = opscope__room_excess(room, bytes);
    if (excess != 0) {
        return opscope__reclaim(directory_fd, excess, discarded_count) ? OPSCOPE_OK
                                                                       : OPSCOPE_ERR_NO_SPACE;
    }
    if (room->is_cut && bytes != 0 && is_well_used(room)) {
        /* The directory has more files than the scan limit: remove more than is added, until a scan
         * covers all. */
        (void)opscope__reclaim(directory_fd, 2 * bytes, discarded_count);
    }
    return OPSCOPE_OK;
}

/* ---- blocks --------------------------------------------------------------------------------------- */

int opscope__room_populate(char *start, uint64_t bytes)
{
    /* madvise refuses a start within a page. Those of aarch64 may have 64 KiB. */
    const uint64_t within = (uintptr_t)start % (uintptr_t)sysconf(_SC_PAGESIZE);
    int result;
    do {
        result = madvise(start - within, within + bytes, MADV_POPULATE_WRITE);
    } while (result != 0 && (errno == EAGAIN || errno == EINTR));
    return result == 0       ? OPSCOPE_OK
           : errno == EINVAL ? OPSCOPE_ERR_UNSUPPORTED
           : errno == ENOMEM ? OPSCOPE_ERR_NO_MEMORY
                             : OPSCOPE_ERR_NO_SPACE;
}
