/* segment/reclaim.c -- removes segments of ended processes when there is no room for a new one.
 *
 * The counts of a removed segment are lost, because no agent has read it. Removal therefore happens
 * only if segments hold more than their limit (segment/room.h): oldest first, no more than needed.
 * The header of the new segment counts the removed ones, and the agent exports that count.
 *
 * Two processes may remove segments at once. Both find the same oldest files; the process whose
 * unlink(2) succeeds counts the file. An agent holds a lock on the file it reads, and such a file
 * stays.
 */
#define _GNU_SOURCE
#include "segment/reclaim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/real_time.h"
#include "opscope/segment.h"
#include "segment/identity.h"
#include "segment/own_files.h"

enum { CHOICE_LIMIT = 1024 };

/* A new file has no lock for a moment, and a reader needs a trace for a moment after its end. Files
 * younger than this stay. */
static const int64_t SETTLED_NS = 60000000000;
/* Largest plausible count of removed segments in a header; a damaged file may have any. */
static const uint64_t COUNT_LIMIT = (uint64_t)1 << 32;

struct files {
    struct opscope__room_file *list;
    uint32_t count;
};

struct ended {
    uint32_t index;
    uint64_t lost_count; /* number of segments whose counts are lost if this file is removed */
};

static void add(const struct opscope__room_file *file, void *context)
{
    struct files *files = context;
    files->list[files->count++] = *file;
}

static int by_age(const void *a, const void *b)
{
    const struct opscope__room_file *first = a, *second = b;
    return (first->changed_ns > second->changed_ns) - (first->changed_ns < second->changed_ns);
}

/* True if the process named in the header has certainly ended, by the rules of
 * agent/opscope/segments/liveness.py. One exception: a reused pid counts as the process itself. */
static bool is_gone(const opscope_segment_header *header, const opscope__identity *self)
{
    static const uint8_t unknown[sizeof header->boot_id];
    if (memcmp(header->boot_id, self->boot_id, sizeof header->boot_id) != 0 &&
        memcmp(header->boot_id, unknown, sizeof unknown) != 0 &&
        memcmp(self->boot_id, unknown, sizeof unknown) != 0) {
        return true;
    }
    return header->pid_namespace == self->pid_namespace && header->pid_namespace != 0 &&
           header->pid <= INT32_MAX && kill((pid_t)header->pid, 0) != 0 && errno == ESRCH;
}

/* With the file's lock held: true if no process can still write into it. */
static bool is_over(int fd, const struct opscope__room_file *file, const opscope__identity *self,
                    int64_t now_ns, uint64_t *out_lost_count)
{
    opscope_segment_header header;
    const bool is_settled = now_ns - file->changed_ns > SETTLED_NS;
    *out_lost_count = 0;
    if (file->is_trace || pread(fd, &header, sizeof header, 0) != sizeof header ||
        header.version != OPSCOPE_SEGMENT_VERSION || header.state == 0) {
        return is_settled;
    }
    const uint64_t before = header.discarded_count;
    *out_lost_count = 1 + (before < COUNT_LIMIT ? before : 0);
    return header.state == OPSCOPE_SEGMENT_CLOSED || header.liveness == OPSCOPE_LIVENESS_LOCK ||
           is_gone(&header, self);
}

static bool has_ended(int directory_fd, const struct opscope__room_file *file,
                      const opscope__identity *self, int64_t now_ns, uint64_t *out_lost_count)
{
    int fd = openat(directory_fd, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    const bool found =
        flock(fd, LOCK_EX | LOCK_NB) == 0 && is_over(fd, file, self, now_ns, out_lost_count);
    close(fd);
    return found;
}

/* Chooses the oldest files of ended processes that together free so many bytes. Returns their
 * number; 0 if all of them free less. */
static uint32_t choose(int directory_fd, const struct files *files, uint64_t bytes,
                       struct ended *chosen)
{
    opscope__identity self;
    opscope__identity_read(&self);
    const int64_t now_ns = (int64_t)opscope__clock_ns(CLOCK_REALTIME);
    uint64_t freed = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < files->count && i < CHOICE_LIMIT && freed < bytes; i++) {
        const struct opscope__room_file *file = &files->list[i];
        uint64_t lost_count;
        if (file->held_bytes != 0 && has_ended(directory_fd, file, &self, now_ns, &lost_count)) {
            chosen[count++] = (struct ended){i, lost_count};
            freed += file->held_bytes;
        }
    }
    return freed >= bytes ? count : 0;
}

bool opscope__reclaim(int directory_fd, uint64_t bytes, uint64_t *discarded_count)
{
    struct files files = {.list = malloc(OPSCOPE__ROOM_FILES * sizeof *files.list)};
    struct ended *chosen = malloc(CHOICE_LIMIT * sizeof *chosen);
    uint32_t count = 0;
    if (files.list != NULL && chosen != NULL) {
        (void)opscope__room_scan(directory_fd, add, &files);
        qsort(files.list, files.count, sizeof *files.list, by_age);
        count = choose(directory_fd, &files, bytes, chosen);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (unlinkat(directory_fd, files.list[chosen[i].index].name, 0) == 0) {
            *discarded_count += chosen[i].lost_count;
        }
    }
    free(files.list);
    free(chosen);
    return count != 0;
}
