/* model/archive/read.c -- opens an archive, finds entries, reads them, makes tensors over them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomics.h"
#include "model/archive/archive.h"
#include "model/archive/zip.h"

/* ---- open and close ------------------------------------------------------------------------- */

static void drop(struct opscope_archive *archive)
{
    if (opscope__drop_reference(&archive->reference_count) != 1) {
        return;
    }
    for (size_t i = 0; i < archive->count; i++) {
        free(archive->entries[i].inflated);
    }
    if (archive->is_mapped) {
        munmap(archive->data, archive->bytes);
    }
    free(archive->entries);
    free(archive->names);
    free(archive->folder);
    free(archive->path);
    free(archive);
}

static int open_over(const char *path, void *data, size_t bytes, bool is_mapped,
                     opscope_archive **out)
{
    struct opscope_archive *archive = calloc(1, sizeof *archive);
    char *copy = strdup(path);
    if (archive == NULL || copy == NULL) {
        free(archive);
        free(copy);
        if (is_mapped) {
            munmap(data, bytes);
        }
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: out of memory", path);
    }
    *archive = (struct opscope_archive){
        .reference_count = 1, .is_mapped = is_mapped, .data = data, .bytes = bytes, .path = copy};
    const int status = opscope__archive_parse(archive);
    if (status != OPSCOPE_OK) {
        drop(archive);
        return status;
    }
    *out = archive;
    return OPSCOPE_OK;
}

int opscope_archive_open_memory(const char *name, void *data, size_t bytes, opscope_archive **out)
{
    return open_over(name, data, bytes, false, out);
}

static int system_failed(const char *path, int error)
{
    opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "%s: %s", path, strerror(error));
    return error == ENOENT   ? OPSCOPE_ERR_NOT_FOUND
           : error == EACCES ? OPSCOPE_ERR_PERMISSION
                             : OPSCOPE_ERR_IO;
}

int opscope_archive_open(const char *path, opscope_archive **out)
{
    /* Not blocking: a named pipe is refused below. */
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) {
        return system_failed(path, errno);
    }
    struct stat found;
    int error = fstat(file, &found) == 0 ? 0 : errno;
    if (error == 0 && !S_ISREG(found.st_mode)) {
        close(file);
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: not a regular file", path);
    }
    if (error == 0 && found.st_size < OPSCOPE__ZIP_END_BYTES) {
        close(file);
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: not a zip file: too short", path);
    }
    void *data = MAP_FAILED;
    if (error == 0) {
        data = mmap(NULL, (size_t)found.st_size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_NORESERVE, file, 0);
        error = data == MAP_FAILED ? errno : 0;
    }
    close(file);
    return error != 0 ? system_failed(path, error)
                      : open_over(path, data, (size_t)found.st_size, true, out);
}

void opscope_archive_close(opscope_archive *archive)
{
    if (archive != NULL) {
        drop(archive);
    }
}

/* ---- entries -------------------------------------------------------------------------------- */

const char *opscope_archive_folder(const opscope_archive *archive)
{
    return archive->folder;
}

size_t opscope_archive_count(const opscope_archive *archive)
{
    return archive->count;
}

int opscope_archive_entry_at(const opscope_archive *archive, size_t index,
                             opscope_archive_entry *out)
{
    if (index >= archive->count) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    const struct opscope__zip_entry *entry = &archive->entries[index];
    *out = (opscope_archive_entry){.name = entry->name,
                                   .bytes = entry->bytes,
                                   .file_bytes = entry->file_bytes,
                                   .offset = entry->offset,
                                   .crc = entry->crc};
    return OPSCOPE_OK;
}

static int compare(const void *name, const void *entry)
{
    return strcmp(name, ((const struct opscope__zip_entry *)entry)->name);
}

static struct opscope__zip_entry *find(const struct opscope_archive *archive, const char *name)
{
    return bsearch(name, archive->entries, archive->count, sizeof *archive->entries, compare);
}

int opscope_archive_find(const opscope_archive *archive, const char *name, size_t *index)
{
    const struct opscope__zip_entry *entry = find(archive, name);
    if (entry == NULL) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    *index = (size_t)(entry - archive->entries);
    return OPSCOPE_OK;
}

/* ---- content -------------------------------------------------------------------------------- */

static int failed(const struct opscope_archive *archive, const char *name, const char *reason)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: entry \"%.200s\": %s", archive->path, name,
                               reason);
}

static int missing(const struct opscope_archive *archive, const char *name)
{
    failed(archive, name, "there is no such entry");
    return OPSCOPE_ERR_NOT_FOUND;
}

static int inflate_entry(const struct opscope_archive *archive, struct opscope__zip_entry *entry)
{
    /* A byte of deflated data gives at most 1,032 bytes. */
    if (entry->bytes / 1032 > entry->file_bytes) {
        return failed(archive, entry->name, "its size cannot come from its deflated data");
    }
    uint8_t *out = malloc(entry->bytes > 0 ? (size_t)entry->bytes : 1);
    if (out == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: entry \"%s\": out of memory",
                                   archive->path, entry->name);
    }
    const char *reason = opscope__inflate(archive->data + entry->offset, (size_t)entry->file_bytes,
                                          out, (size_t)entry->bytes);
    if (reason != NULL) {
        free(out);
        return failed(archive, entry->name, reason);
    }
    uint8_t *none = NULL;
    /* acq_rel: pairs with itself and with the acquire in `read`. */
    if (!opscope__replace_acq_rel(&entry->inflated, &none, out)) {
        free(out); /* another thread was first */
    }
    return OPSCOPE_OK;
}

int opscope_archive_read(opscope_archive *archive, const char *name, const void **data,
                         size_t *bytes)
{
    struct opscope__zip_entry *entry = find(archive, name);
    if (entry == NULL) {
        return missing(archive, name);
    }
    const uint8_t *content = archive->data + entry->offset;
    if (entry->method == OPSCOPE__ZIP_DEFLATED) {
        if (opscope__load_acquire(&entry->inflated) == NULL) {
            const int status = inflate_entry(archive, entry);
            if (status != OPSCOPE_OK) {
                return status;
            }
        }
        content = opscope__load_acquire(&entry->inflated);
    }
    /* Once: afterwards a tensor over the entry may have been written to. */
    if (!opscope__load_relaxed(&entry->is_checked)) {
        if (opscope__crc32(0, content, (size_t)entry->bytes) != entry->crc) {
            return failed(archive, entry->name, "its content does not have its CRC-32: damaged");
        }
        opscope__store_relaxed(&entry->is_checked, true);
    }
    *data = content;
    *bytes = (size_t)entry->bytes;
    return OPSCOPE_OK;
}

static void drop_for_tensor(void *archive)
{
    drop(archive);
}

int opscope_archive_tensor(opscope_archive *archive, const char *name, opscope_dtype dtype,
                           opscope_tensor **out)
{
    const struct opscope__zip_entry *entry = find(archive, name);
    if (entry == NULL) {
        return missing(archive, name);
    }
    if (entry->method != OPSCOPE__ZIP_STORED) {
        return failed(archive, name, "a tensor's data must be stored, not deflated");
    }
    if ((unsigned)dtype >= OPSCOPE_DTYPE_COUNT) {
        return failed(archive, name, "unknown dtype");
    }
    const size_t element = opscope_dtype_bytes(dtype);
    const int64_t count = (int64_t)(entry->bytes / element), one = 1;
    uint8_t *data = archive->data + entry->offset;
    if ((uintptr_t)data % element != 0) {
        const int status = opscope_tensor_empty(1, &count, dtype, NULL, out);
        if (status == OPSCOPE_OK && count > 0) {
            memcpy(opscope_tensor_data(*out), data, (size_t)count * element);
        }
        return status;
    }
    opscope__add_relaxed(&archive->reference_count, 1);
    const int status = opscope_tensor_from_memory(data, 1, &count, &one, dtype, false,
                                                  drop_for_tensor, archive, out);
    if (status != OPSCOPE_OK) {
        drop(archive);
    }
    return status;
}
