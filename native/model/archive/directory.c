/* model/archive/directory.c -- reads the directory of a zip file, checking every number.
 *
 * Refused beside what is damaged: encryption, several disks, other methods than "stored" and
 * "deflated", two entries of one name, entries that overlap, names that leave the folder. So a
 * reader of this file and any other reader see the same content.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "model/archive/archive.h"
#include "model/archive/zip.h"

enum { COMMENT_LIMIT = 0xffff, NAME_SHOWN = 200 };

struct directory {
    uint64_t offset, bytes, count;
};

static int damaged(const struct opscope_archive *archive, const char *reason)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: %s", archive->path, reason);
}

static int refused(const struct opscope_archive *archive, const char *name, size_t name_bytes,
                   const char *reason)
{
    char shown[NAME_SHOWN + 1];
    const size_t bytes = name_bytes < NAME_SHOWN ? name_bytes : NAME_SHOWN;
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char letter = (unsigned char)name[i];
        shown[i] = letter < ' ' || letter == 0x7f ? '?' : name[i];
    }
    shown[bytes] = '\0';
    return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: entry \"%s\": %s", archive->path, shown,
                               reason);
}

/* ---- the end of the file -------------------------------------------------------------------- */

/* The end record, which is followed by nothing but its comment. NULL without one. */
static const uint8_t *find_end(const struct opscope_archive *archive)
{
    const size_t most = OPSCOPE__ZIP_END_BYTES + COMMENT_LIMIT;
    const size_t least = archive->bytes > most ? archive->bytes - most : 0;
    for (size_t at = archive->bytes - OPSCOPE__ZIP_END_BYTES + 1; at-- > least;) {
        const uint8_t *record = archive->data + at;
        if (opscope__zip_u32(record) == OPSCOPE__ZIP_END &&
            opscope__zip_u16(record + 20) == archive->bytes - at - OPSCOPE__ZIP_END_BYTES) {
            return record;
        }
    }
    return NULL;
}

/* The zip64 record that stands before the end record, or NULL. */
static const uint8_t *find_end64(const struct opscope_archive *archive, const uint8_t *end)
{
    const size_t before = (size_t)(end - archive->data);
    if (before < OPSCOPE__ZIP64_LOCATOR_BYTES + OPSCOPE__ZIP64_END_BYTES) {
        return NULL;
    }
    const uint8_t *locator = end - OPSCOPE__ZIP64_LOCATOR_BYTES;
    if (opscope__zip_u32(locator) != OPSCOPE__ZIP64_LOCATOR) {
        return NULL;
    }
    const uint64_t at = opscope__zip_u64(locator + 8);
    if (at > before - OPSCOPE__ZIP64_LOCATOR_BYTES - OPSCOPE__ZIP64_END_BYTES ||
        opscope__zip_u32(archive->data + at) != OPSCOPE__ZIP64_END) {
        return NULL;
    }
    return archive->data + at;
}

static int find_directory(const struct opscope_archive *archive, struct directory *out)
{
    if (archive->bytes < OPSCOPE__ZIP_END_BYTES) {
        return damaged(archive, "not a zip file: too short");
    }
    const uint8_t *end = find_end(archive);
    if (end == NULL) {
        return damaged(archive, "not a zip file, or truncated: it has no end record");
    }
    const uint8_t *end64 = find_end64(archive, end);
    uint64_t limit = (uint64_t)(end - archive->data);
    uint32_t disks = (uint32_t)opscope__zip_u16(end + 4) | opscope__zip_u16(end + 6);
    uint64_t here = opscope__zip_u16(end + 8);
    *out = (struct directory){.offset = opscope__zip_u32(end + 16),
                              .bytes = opscope__zip_u32(end + 12),
                              .count = opscope__zip_u16(end + 10)};
    if (end64 != NULL) {
        limit = (uint64_t)(end64 - archive->data);
        disks = opscope__zip_u32(end64 + 16) | opscope__zip_u32(end64 + 20);
        here = opscope__zip_u64(end64 + 24);
        *out = (struct directory){.offset = opscope__zip_u64(end64 + 48),
                                  .bytes = opscope__zip_u64(end64 + 40),
                                  .count = opscope__zip_u64(end64 + 32)};
    }
    if (disks != 0 || here != out->count) {
        return damaged(archive, "a zip file of several disks");
    }
    if (out->offset > limit || out->bytes > limit - out->offset) {
        return damaged(archive, "its directory lies outside of the file");
    }
    if (out->count > out->bytes / OPSCOPE__ZIP_CENTRAL_BYTES) {
        return damaged(archive, "its directory is too short for its entries");
    }
    return OPSCOPE_OK;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Takes from the zip64 extra field the numbers that the record itself has no room for. */
static bool read_zip64(const uint8_t *extra, size_t extra_bytes, struct opscope__zip_entry *entry)
{
    uint64_t *wanted[] = {&entry->bytes, &entry->file_bytes, &entry->local};
    while (extra_bytes >= 4) {
        const size_t bytes = opscope__zip_u16(extra + 2);
        if (bytes > extra_bytes - 4) {
            return false;
        }
        if (opscope__zip_u16(extra) == OPSCOPE__ZIP64_EXTRA) {
            const uint8_t *at = extra + 4;
            for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
                if (*wanted[i] == OPSCOPE__ZIP_SATURATED) {
                    if (at + 8 > extra + 4 + bytes) {
                        return false;
                    }
                    *wanted[i] = opscope__zip_u64(at);
                    at += 8;
                }
            }
            return true;
        }
        extra += 4 + bytes;
        extra_bytes -= 4 + bytes;
    }
    return true;
}

/* Finds the data behind the local header, which must agree with the directory. */
static const char *find_data(const struct opscope_archive *archive, uint64_t limit,
                             const char *name, size_t name_bytes, struct opscope__zip_entry *entry)
{
    if (limit < OPSCOPE__ZIP_LOCAL_BYTES || entry->local > limit - OPSCOPE__ZIP_LOCAL_BYTES) {
        return "it lies outside of the file";
    }
    const uint8_t *local = archive->data + entry->local;
    const uint64_t after = (uint64_t)OPSCOPE__ZIP_LOCAL_BYTES + opscope__zip_u16(local + 26) +
                           opscope__zip_u16(local + 28);
    if (opscope__zip_u32(local) != OPSCOPE__ZIP_LOCAL ||
        opscope__zip_u16(local + 26) != name_bytes || after > limit - entry->local ||
        memcmp(local + OPSCOPE__ZIP_LOCAL_BYTES, name, name_bytes) != 0 ||
        opscope__zip_u16(local + 8) != entry->method) {
        return "its header does not agree with the directory";
    }
    entry->offset = entry->local + after;
    if (entry->file_bytes > limit - entry->offset) {
        return "its data lies outside of the file";
    }
    return NULL;
}

static const char *judge(const uint8_t *record, const struct opscope__zip_entry *entry)
{
    if (opscope__zip_u16(record + 8) & OPSCOPE__ZIP_ENCRYPTED) {
        return "it is encrypted";
    }
    if (opscope__zip_u16(record + 34) != 0) {
        return "it lies on another disk";
    }
    if (entry->method != OPSCOPE__ZIP_STORED && entry->method != OPSCOPE__ZIP_DEFLATED) {
        return "its compression is unknown: only stored and deflated entries are read";
    }
    if (entry->method == OPSCOPE__ZIP_STORED && entry->bytes != entry->file_bytes) {
        return "it is stored, but its two sizes differ";
    }
    return NULL;
}

/* One record of the directory. A folder's own entry is left out: `is_file` says so. */
static int read_record(struct opscope_archive *archive, const struct directory *directory,
                       uint64_t *at, char **names, bool *is_file)
{
    const uint64_t end = directory->offset + directory->bytes;
    const uint8_t *record = archive->data + *at;
    if (end - *at < OPSCOPE__ZIP_CENTRAL_BYTES ||
        opscope__zip_u32(record) != OPSCOPE__ZIP_CENTRAL) {
        return damaged(archive, "its directory is damaged");
    }
    const size_t name_bytes = opscope__zip_u16(record + 28);
    const size_t extra_bytes = opscope__zip_u16(record + 30);
    const uint64_t bytes = OPSCOPE__ZIP_CENTRAL_BYTES + (uint64_t)name_bytes + extra_bytes +
                           opscope__zip_u16(record + 32);
    if (bytes > end - *at) {
        return damaged(archive, "its directory is damaged");
    }
    *at += bytes;
    const char *name = (const char *)record + OPSCOPE__ZIP_CENTRAL_BYTES;
    struct opscope__zip_entry *entry = &archive->entries[archive->count];
    *entry = (struct opscope__zip_entry){.name = *names,
                                         .local = opscope__zip_u32(record + 42),
                                         .file_bytes = opscope__zip_u32(record + 20),
                                         .bytes = opscope__zip_u32(record + 24),
                                         .crc = opscope__zip_u32(record + 16),
                                         .method = opscope__zip_u16(record + 10)};
    *is_file = !(name_bytes > 0 && name[name_bytes - 1] == '/' && entry->bytes == 0);
    if (!opscope__zip_is_safe_name(name, name_bytes - !*is_file)) {
        return refused(archive, name, name_bytes, "its name is not a path within the archive");
    }
    if (!*is_file) {
        return OPSCOPE_OK;
    }
    const char *reason = NULL;
    if (!read_zip64((const uint8_t *)name + name_bytes, extra_bytes, entry)) {
        reason = "its extra fields are damaged";
    }
    reason = reason != NULL ? reason : judge(record, entry);
    reason =
        reason != NULL ? reason : find_data(archive, directory->offset, name, name_bytes, entry);
    if (reason != NULL) {
        return refused(archive, name, name_bytes, reason);
    }
    memcpy(*names, name, name_bytes);
    (*names)[name_bytes] = '\0';
    *names += name_bytes + 1;
    return OPSCOPE_OK;
}

/* ---- all of them ------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
    const struct opscope__zip_entry *left = a, *right = b;
    return left->local < right->local ? -1 : left->local > right->local;
}

static int by_name(const void *a, const void *b)
{
    const struct opscope__zip_entry *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static int check_places(struct opscope_archive *archive)
{
    qsort(archive->entries, archive->count, sizeof *archive->entries, by_place);
    for (size_t i = 1; i < archive->count; i++) {
        const struct opscope__zip_entry *before = &archive->entries[i - 1];
        if (before->offset + before->file_bytes > archive->entries[i].local) {
            return refused(archive, before->name, strlen(before->name),
                           "it overlaps another entry");
        }
    }
    return OPSCOPE_OK;
}

static int check_names(struct opscope_archive *archive)
{
    qsort(archive->entries, archive->count, sizeof *archive->entries, by_name);
    for (size_t i = 1; i < archive->count; i++) {
        const char *name = archive->entries[i].name;
        if (strcmp(archive->entries[i - 1].name, name) == 0) {
            return refused(archive, name, strlen(name), "two entries have this name");
        }
    }
    return OPSCOPE_OK;
}

/* The folder that all entries lie in is taken off their names, which stay sorted. */
static int take_folder(struct opscope_archive *archive)
{
    const char *first = archive->count > 0 ? archive->entries[0].name : "";
    const char *slash = strchr(first, '/');
    size_t bytes = slash != NULL ? (size_t)(slash - first) + 1 : 0;
    for (size_t i = 1; i < archive->count && bytes > 0; i++) {
        if (strncmp(archive->entries[i].name, first, bytes) != 0) {
            bytes = 0;
        }
    }
    archive->folder = strndup(first, bytes > 0 ? bytes - 1 : 0);
    if (archive->folder == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: out of memory", archive->path);
    }
    for (size_t i = 0; i < archive->count; i++) {
        archive->entries[i].name += bytes;
    }
    return OPSCOPE_OK;
}

int opscope__archive_parse(struct opscope_archive *archive)
{
    struct directory directory = {0};
    int status = find_directory(archive, &directory);
    if (status != OPSCOPE_OK) {
        return status;
    }
    /* Each name stands in the directory, in a record of more than one byte beside it. */
    archive->names = malloc((size_t)directory.bytes + 1);
    archive->entries = calloc((size_t)directory.count + 1, sizeof *archive->entries);
    if (archive->names == NULL || archive->entries == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: out of memory", archive->path);
    }
    char *names = archive->names;
    uint64_t at = directory.offset;
    for (uint64_t i = 0; i < directory.count; i++) {
        bool is_file = false;
        status = read_record(archive, &directory, &at, &names, &is_file);
        if (status != OPSCOPE_OK) {
            return status;
        }
        archive->count += is_file;
    }
    if (at != directory.offset + directory.bytes) {
        return damaged(archive, "its directory has more bytes than its entries");
    }
    status = check_places(archive);
    status = status != OPSCOPE_OK ? status : check_names(archive);
    return status != OPSCOPE_OK ? status : take_folder(archive);
}
