/* segment/own_files.h -- walks this user's Opscope files in a directory, up to a limit. */
#ifndef OPSCOPE_SEGMENT_OWN_FILES_H
#define OPSCOPE_SEGMENT_OWN_FILES_H

#include <stdbool.h>
#include <stdint.h>

enum { OPSCOPE__ROOM_FILES = 4096, OPSCOPE__ROOM_NAME_BYTES = 72 };

/* One of Opscope's files: a segment, or the trace beside one. */
struct opscope__room_file {
    char name[OPSCOPE__ROOM_NAME_BYTES];
    uint64_t held_bytes;     /* allocated blocks */
    uint64_t promised_bytes; /* its size beyond that */
    int64_t changed_ns;      /* since 1970 */
    bool is_trace;
};

/* Calls `visit` for each of this user's files, at most OPSCOPE__ROOM_FILES; false if there are
 * more. */
bool opscope__room_scan(int directory_fd,
                        void (*visit)(const struct opscope__room_file *file, void *context),
                        void *context);
/* The same for names only, of all users' files. */
bool opscope__own_names(int directory_fd,
                        void (*visit)(int directory_fd, const char *name, void *context),
                        void *context);

#endif
