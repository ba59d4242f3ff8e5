/* model/archive/archive.h -- an open archive, as the files of the reader share it. */
#ifndef OPSCOPE_MODEL_ARCHIVE_ARCHIVE_H
#define OPSCOPE_MODEL_ARCHIVE_ARCHIVE_H

#include "opscope/archive.h"

struct opscope__zip_entry {
    const char *name; /* in `names` */
    uint64_t local;   /* of the local header in the file */
    uint64_t offset;  /* of the data */
    uint64_t file_bytes;
    uint64_t bytes;
    uint32_t crc;
    uint16_t method;
    bool is_checked;   /* atomic: the content has its CRC */
    uint8_t *inflated; /* atomic: published by the first thread that reads the entry */
};

struct opscope_archive {
    uint32_t reference_count; /* atomic: the caller's and one for each tensor's storage */
    bool is_mapped;
    uint8_t *data;
    size_t bytes;
    char *path;
    char *folder;
    char *names;                        /* of all entries, each ended by NUL */
    struct opscope__zip_entry *entries; /* by name */
    size_t count;
};

/* Fills folder, names and entries from the bytes. Fails with a text that begins with the path;
 * what it has allocated then is the caller's to free. */
int opscope__archive_parse(struct opscope_archive *archive);

#endif
