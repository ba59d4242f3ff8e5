/* segment/own_files.c -- see segment/own_files.h. */
#define _GNU_SOURCE
#include "segment/own_files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LISTING_BYTES = 4096, BLOCK_BYTES = 512 };

/* The record format of getdents64(2). */
struct listed {
    uint64_t inode, position;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

/* "<pid>-<start>-<random>.seg", hidden or not, or with a suffix for a file that belongs to it. */
static bool is_ours(const char *name)
{
    const char *end = strstr(name, ".seg");
    return end != NULL && (end[4] == '\0' || end[4] == '.') &&
           strlen(name) < OPSCOPE__ROOM_NAME_BYTES;
}

static bool read_info(int directory_fd, const char *name, struct opscope__room_file *out)
{
    struct stat info;
    if (fstatat(directory_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode) ||
        info.st_uid != geteuid()) {
        return false;
    }
    const uint64_t size = (uint64_t)info.st_size, held = (uint64_t)info.st_blocks * BLOCK_BYTES;
    *out = (struct opscope__room_file){
        .held_bytes = held,
        .promised_bytes = size > held ? size - held : 0,
        .changed_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec,
        .is_trace = strstr(name, ".seg.") != NULL};
    strcpy(out->name, name);
    return true;
}

/* Reads the directory with system calls, because the C library would allocate. */
bool opscope__own_names(int directory_fd,
                        void (*visit)(int directory_fd, const char *name, void *context),
                        void *context)
{
    char listing[LISTING_BYTES] __attribute__((aligned(8)));
    uint32_t count = 0;
    long bytes;
    if (lseek(directory_fd, 0, SEEK_SET) != 0) {
        return true;
    }
    while ((bytes = syscall(SYS_getdents64, directory_fd, listing, sizeof listing)) > 0) {
        for (long at = 0; at < bytes;) {
            const struct listed *entry = (const void *)(listing + at);
            if (count++ == OPSCOPE__ROOM_FILES) {
                return false;
            }
            if (is_ours(entry->name)) {
                visit(directory_fd, entry->name, context);
            }
            at += entry->bytes;
        }
    }
    return true;
}

struct visitor {
    void (*visit)(const struct opscope__room_file *file, void *context);
    void *context;
};

static void visit_file(int directory_fd, const char *name, void *context)
{
    const struct visitor *visitor = context;
    struct opscope__room_file file;
    if (read_info(directory_fd, name, &file)) {
        visitor->visit(&file, visitor->context);
    }
}

bool opscope__room_scan(int directory_fd,
                        void (*visit)(const struct opscope__room_file *file, void *context),
                        void *context)
{
    struct visitor visitor = {visit, context};
    return opscope__own_names(directory_fd, visit_file, &visitor);
}
