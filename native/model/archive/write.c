/* model/archive/write.c -- writes an archive beside the old file, and then replaces that.
 *
 * A reader finds the old file or the new one, never a mixture. The content is on the disk before
 * the file gets its name. Two saves of the same content give the same bytes: no entry has a date.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/archive/zip.h"
#include "opscope/archive.h"
#include "opscope/extra_files.h"

enum {
    NAME_LIMIT = 1024,
    EXTRA_HEADER = 4,
    ZIP64_LOCAL_EXTRA = EXTRA_HEADER + 16,
    ZIP64_CENTRAL_EXTRA = EXTRA_HEADER + 24,
    BUFFER_BYTES = 1 << 18,
    RECORD_BYTES = 128 /* of the longest record without its name */
};

struct written {
    char *name; /* with the folder */
    uint64_t offset, bytes;
    uint32_t crc;
};

struct opscope_archive_writer {
    FILE *file;
    char *path;   /* of the finished file */
    char *fresh;  /* of the new one, beside it */
    char *folder; /* ends with a slash, or is empty */
    uint64_t at;  /* bytes written */
    struct written *entries;
    size_t count, capacity;
};

/* Little-endian numbers, one after another. */
struct record {
    uint8_t bytes[RECORD_BYTES];
    size_t length;
};

static void put(struct record *record, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        record->bytes[record->length++] = (uint8_t)(value >> 8 * i);
    }
}

static int write_failed(const opscope_archive_writer *writer, int error)
{
    opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "%s: cannot be written: %s", writer->path,
                        strerror(error != 0 ? error : EIO));
    return error == ENOSPC || error == EDQUOT  ? OPSCOPE_ERR_NO_SPACE
           : error == EACCES || error == EPERM ? OPSCOPE_ERR_PERMISSION
           : error == EROFS                    ? OPSCOPE_ERR_READ_ONLY
                                               : OPSCOPE_ERR_IO;
}

static int write_bytes(opscope_archive_writer *writer, const void *data, size_t bytes)
{
    if (bytes > 0 && fwrite(data, 1, bytes, writer->file) != bytes) {
        return write_failed(writer, errno);
    }
    writer->at += bytes;
    return OPSCOPE_OK;
}

static int no_memory(const char *path)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: out of memory", path);
}

/* ---- begin and end -------------------------------------------------------------------------- */

static void free_writer(opscope_archive_writer *writer)
{
    for (size_t i = 0; i < writer->count; i++) {
        free(writer->entries[i].name);
    }
    free(writer->entries);
    free(writer->folder);
    free(writer->fresh);
    free(writer->path);
    free(writer);
}

void opscope_archive_writer_cancel(opscope_archive_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    if (writer->file != NULL) {
        fclose(writer->file);
        unlink(writer->fresh);
    }
    free_writer(writer);
}

/* The file that a link at `path` leads to, as the program means that one. */
static char *target_of(const char *path)
{
    struct stat found;
    if (lstat(path, &found) == 0 && S_ISLNK(found.st_mode)) {
        char *target = realpath(path, NULL);
        if (target != NULL) {
            return target;
        }
    }
    return strdup(path);
}

static int open_fresh(opscope_archive_writer *writer)
{
    struct stat old;
    const bool replaces = stat(writer->path, &old) == 0;
    if (replaces && !S_ISREG(old.st_mode)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: not a regular file", writer->path);
    }
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) {
        random = (uint64_t)getpid(); /* O_EXCL refuses a name that is taken */
    }
    if (asprintf(&writer->fresh, "%s.%016llx.new", writer->path, (unsigned long long)random) < 0) {
        writer->fresh = NULL;
        return no_memory(writer->path);
    }
    const int file = open(writer->fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) {
        return write_failed(writer, errno);
    }
    if (replaces) {
        (void)fchmod(file, old.st_mode & 0777);
    }
    writer->file = fdopen(file, "w");
    if (writer->file == NULL) {
        const int error = errno;
        close(file);
        unlink(writer->fresh);
        return write_failed(writer, error);
    }
    setvbuf(writer->file, NULL, _IOFBF, BUFFER_BYTES);
    return OPSCOPE_OK;
}

int opscope_archive_writer_open(const char *path, const char *folder, opscope_archive_writer **out)
{
    if (folder[0] != '\0' && !opscope__zip_is_safe_name(folder, strlen(folder))) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: \"%.200s\" cannot be a folder", path,
                                   folder);
    }
    opscope_archive_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL) {
        return no_memory(path);
    }
    writer->path = target_of(path);
    int status =
        writer->path == NULL || asprintf(&writer->folder, "%s%s", folder, folder[0] ? "/" : "") < 0
            ? no_memory(path)
            : open_fresh(writer);
    if (status != OPSCOPE_OK) {
        opscope_archive_writer_cancel(writer);
        return status;
    }
    *out = writer;
    return OPSCOPE_OK;
}

/* ---- entries -------------------------------------------------------------------------------- */

static bool has_entry(const opscope_archive_writer *writer, const char *name)
{
    const size_t skip = strlen(writer->folder);
    for (size_t i = 0; i < writer->count; i++) {
        if (strcmp(writer->entries[i].name + skip, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The local header, and after it padding up to a multiple of the alignment. */
static int write_header(opscope_archive_writer *writer, const struct written *entry)
{
    const bool is_large = entry->bytes >= OPSCOPE__ZIP_SATURATED;
    const uint64_t bytes = is_large ? OPSCOPE__ZIP_SATURATED : entry->bytes;
    const size_t name_bytes = strlen(entry->name);
    const uint64_t extra_bytes = EXTRA_HEADER + (is_large ? ZIP64_LOCAL_EXTRA : 0);
    const uint64_t least = writer->at + OPSCOPE__ZIP_LOCAL_BYTES + name_bytes + extra_bytes;
    const uint64_t padding =
        (OPSCOPE_ARCHIVE_ALIGNMENT - least % OPSCOPE_ARCHIVE_ALIGNMENT) % OPSCOPE_ARCHIVE_ALIGNMENT;
    struct record header = {.length = 0};
    put(&header, OPSCOPE__ZIP_LOCAL, 4);
    put(&header, is_large ? OPSCOPE__ZIP64_VERSION : OPSCOPE__ZIP_VERSION, 2);
    put(&header, OPSCOPE__ZIP_UTF8, 2);
    put(&header, OPSCOPE__ZIP_STORED, 2);
    put(&header, 0, 2);
    put(&header, OPSCOPE__ZIP_DAY_ONE, 2);
    put(&header, entry->crc, 4);
    put(&header, bytes, 4);
    put(&header, bytes, 4);
    put(&header, name_bytes, 2);
    put(&header, extra_bytes + padding, 2);
    struct record extra = {.length = 0};
    if (is_large) {
        put(&extra, OPSCOPE__ZIP64_EXTRA, 2);
        put(&extra, 16, 2);
        put(&extra, entry->bytes, 8);
        put(&extra, entry->bytes, 8);
    }
    put(&extra, OPSCOPE__ZIP_PADDING, 2);
    put(&extra, padding, 2);
    static const uint8_t pad[OPSCOPE_ARCHIVE_ALIGNMENT] = {0};
    int status = write_bytes(writer, header.bytes, header.length);
    status = status != 0 ? status : write_bytes(writer, entry->name, name_bytes);
    status = status != 0 ? status : write_bytes(writer, extra.bytes, extra.length);
    return status != 0 ? status : write_bytes(writer, pad, (size_t)padding);
}

int opscope_archive_writer_add(opscope_archive_writer *writer, const char *name, const void *data,
                               size_t bytes)
{
    if (!opscope__zip_is_safe_name(name, strlen(name)) || strlen(name) > NAME_LIMIT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "%s: \"%.200s\" is not a path within the archive", writer->path,
                                   name);
    }
    if (writer->count == writer->capacity) {
        const size_t capacity = writer->capacity > 0 ? 2 * writer->capacity : 64;
        struct written *grown = reallocarray(writer->entries, capacity, sizeof *grown);
        if (grown == NULL) {
            return no_memory(writer->path);
        }
        writer->entries = grown;
        writer->capacity = capacity;
    }
    struct written *entry = &writer->entries[writer->count];
    *entry = (struct written){
        .offset = writer->at, .bytes = bytes, .crc = opscope__crc32(0, data, bytes)};
    if (asprintf(&entry->name, "%s%s", writer->folder, name) < 0) {
        return no_memory(writer->path);
    }
    writer->count++;
    const int status = write_header(writer, entry);
    return status != OPSCOPE_OK ? status : write_bytes(writer, data, bytes);
}

/* ---- the end of the file -------------------------------------------------------------------- */

static int write_central(opscope_archive_writer *writer, const struct written *entry)
{
    const bool is_large =
        entry->bytes >= OPSCOPE__ZIP_SATURATED || entry->offset >= OPSCOPE__ZIP_SATURATED;
    const uint64_t bytes = is_large ? OPSCOPE__ZIP_SATURATED : entry->bytes;
    struct record record = {.length = 0};
    put(&record, OPSCOPE__ZIP_CENTRAL, 4);
    put(&record, is_large ? OPSCOPE__ZIP64_VERSION : OPSCOPE__ZIP_VERSION, 2);
    put(&record, is_large ? OPSCOPE__ZIP64_VERSION : OPSCOPE__ZIP_VERSION, 2);
    put(&record, OPSCOPE__ZIP_UTF8, 2);
    put(&record, OPSCOPE__ZIP_STORED, 2);
    put(&record, 0, 2);
    put(&record, OPSCOPE__ZIP_DAY_ONE, 2);
    put(&record, entry->crc, 4);
    put(&record, bytes, 4);
    put(&record, bytes, 4);
    put(&record, strlen(entry->name), 2);
    put(&record, is_large ? ZIP64_CENTRAL_EXTRA : 0, 2);
    put(&record, 0, 2 + 2); /* comment, disk */
    put(&record, 0, 2 + 4); /* attributes */
    put(&record, is_large ? OPSCOPE__ZIP_SATURATED : entry->offset, 4);
    struct record extra = {.length = 0};
    if (is_large) {
        put(&extra, OPSCOPE__ZIP64_EXTRA, 2);
        put(&extra, 24, 2);
        put(&extra, entry->bytes, 8);
        put(&extra, entry->bytes, 8);
        put(&extra, entry->offset, 8);
    }
    int status = write_bytes(writer, record.bytes, record.length);
    status = status != 0 ? status : write_bytes(writer, entry->name, strlen(entry->name));
    return status != 0 ? status : write_bytes(writer, extra.bytes, extra.length);
}

static int write_end(opscope_archive_writer *writer, uint64_t directory)
{
    const uint64_t at = writer->at, bytes = at - directory, count = writer->count;
    struct record end = {.length = 0};
    if (directory >= OPSCOPE__ZIP_SATURATED || bytes >= OPSCOPE__ZIP_SATURATED || count >= 0xffff) {
        put(&end, OPSCOPE__ZIP64_END, 4);
        put(&end, OPSCOPE__ZIP64_END_BYTES - 12, 8);
        put(&end, OPSCOPE__ZIP64_VERSION, 2);
        put(&end, OPSCOPE__ZIP64_VERSION, 2);
        put(&end, 0, 4 + 4); /* disks */
        put(&end, count, 8);
        put(&end, count, 8);
        put(&end, bytes, 8);
        put(&end, directory, 8);
        put(&end, OPSCOPE__ZIP64_LOCATOR, 4);
        put(&end, 0, 4);
        put(&end, at, 8);
        put(&end, 1, 4);
    }
    put(&end, OPSCOPE__ZIP_END, 4);
    put(&end, 0, 2 + 2);
    put(&end, count < 0xffff ? count : 0xffff, 2);
    put(&end, count < 0xffff ? count : 0xffff, 2);
    put(&end, bytes < OPSCOPE__ZIP_SATURATED ? bytes : OPSCOPE__ZIP_SATURATED, 4);
    put(&end, directory < OPSCOPE__ZIP_SATURATED ? directory : OPSCOPE__ZIP_SATURATED, 4);
    put(&end, 0, 2);
    return write_bytes(writer, end.bytes, end.length);
}

/* The files of the process's hook. A file of the program itself takes precedence, and a name that
 * is no path is left out: a hook spoils no save. */
static int add_hook_files(opscope_archive_writer *writer)
{
    opscope_extra_files *files = opscope_extra_files_collect();
    int status = OPSCOPE_OK;
    for (size_t i = 0; i < opscope_extra_files_count(files) && status == OPSCOPE_OK; i++) {
        const opscope_extra_file file = opscope_extra_files_at(files, i);
        char name[NAME_LIMIT + 1];
        const int bytes = snprintf(name, sizeof name, "extra/%s", file.name);
        if (bytes <= NAME_LIMIT && opscope__zip_is_safe_name(name, strlen(name)) &&
            !has_entry(writer, name)) {
            status = opscope_archive_writer_add(writer, name, file.data, file.bytes);
        }
    }
    opscope_extra_files_free(files);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct written *)a)->name, ((const struct written *)b)->name);
}

/* Sorts the entries by name, as the directory then has them. */
static int refuse_doubles(opscope_archive_writer *writer)
{
    qsort(writer->entries, writer->count, sizeof *writer->entries, by_name);
    for (size_t i = 1; i < writer->count; i++) {
        if (strcmp(writer->entries[i - 1].name, writer->entries[i].name) == 0) {
            return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: two entries have the name \"%s\"",
                                       writer->path, writer->entries[i].name);
        }
    }
    return OPSCOPE_OK;
}

static int sync_file(opscope_archive_writer *writer)
{
    if (fflush(writer->file) != 0) {
        return write_failed(writer, errno);
    }
    /* Some file systems have nothing to sync. */
    if (fsync(fileno(writer->file)) != 0 && errno != EINVAL && errno != ENOTSUP) {
        return write_failed(writer, errno);
    }
    return OPSCOPE_OK;
}

static int write_rest(opscope_archive_writer *writer)
{
    int status = add_hook_files(writer);
    status = status != OPSCOPE_OK ? status : refuse_doubles(writer);
    const uint64_t directory = writer->at;
    for (size_t i = 0; i < writer->count && status == OPSCOPE_OK; i++) {
        status = write_central(writer, &writer->entries[i]);
    }
    status = status != OPSCOPE_OK ? status : write_end(writer, directory);
    return status != OPSCOPE_OK ? status : sync_file(writer);
}

int opscope_archive_writer_finish(opscope_archive_writer *writer)
{
    int status = write_rest(writer);
    if (status == OPSCOPE_OK) {
        const int error = fclose(writer->file) == 0 ? 0 : errno;
        writer->file = NULL;
        if (error != 0 || rename(writer->fresh, writer->path) != 0) {
            status = write_failed(writer, error != 0 ? error : errno);
            unlink(writer->fresh);
        }
    }
    opscope_archive_writer_cancel(writer);
    return status;
}
