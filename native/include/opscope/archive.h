/* opscope/archive.h -- archives of models: zip files whose tensors are mapped, not read.
 *
 * The idea: an archive is a zip file of stored entries, and the data of a tensor begins at a
 * multiple of 64 bytes. Opening maps the file privately: a tensor is a view of the mapping, its
 * pages are shared by all processes until one writes to them, and a write never reaches the file.
 * Other zip files, such as those that PyTorch writes, are read too, with entries that are deflated
 * (by the system's zlib) and zip64. All bytes are checked before use: a damaged file is an error
 * that names file, entry and reason.
 *
 * A program that truncates a file in place while it is mapped ends with SIGBUS at the next access,
 * as with any mapping. The writer here replaces files by rename, which does no harm.
 *
 * Functions fail with a negative opscope_status; opscope_tensor_error() has the text.
 * Threads: an open archive may be used by several threads at once, a writer by one. Forks: both
 * stay valid in the child, which must not finish a writer of its parent.
 *
 *     opscope_archive *archive;
 *     opscope_tensor *weights;
 *     if (opscope_archive_open("model.pt", &archive) == OPSCOPE_OK &&
 *         opscope_archive_tensor(archive, "data/0", OPSCOPE_FLOAT32, &weights) == OPSCOPE_OK) ...
 */
#ifndef OPSCOPE_ARCHIVE_H
#define OPSCOPE_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include "opscope/tensor.h"

OPSCOPE_BEGIN_DECLS

enum { OPSCOPE_ARCHIVE_ALIGNMENT = 64 };

/* ---- reading ------------------------------------------------------------------------------ */

typedef struct opscope_archive opscope_archive;

typedef struct opscope_archive_entry {
    const char *name;    /* without the archive's folder; valid while the archive is open */
    uint64_t bytes;      /* of the content */
    uint64_t file_bytes; /* in the file: less than `bytes` if the entry is deflated */
    uint64_t offset;     /* of the data in the file */
    uint32_t crc;        /* CRC-32 of the content, as the file states it */
} opscope_archive_entry;

OPSCOPE_API int opscope_archive_open(const char *path, opscope_archive **out);
/* The same over memory of the caller, which must stay until the archive and all its tensors are
 * gone; tensors write to that memory. Error texts have `name` in place of a path. */
OPSCOPE_API int opscope_archive_open_memory(const char *name, void *data, size_t bytes,
                                            opscope_archive **out);
/* NULL is allowed. The mapping stays until the last tensor over it is gone. */
OPSCOPE_API void opscope_archive_close(opscope_archive *archive);

/* The folder that all entries of the file lie in; "" without one. It is no part of names. */
OPSCOPE_API const char *opscope_archive_folder(const opscope_archive *archive);
OPSCOPE_API size_t opscope_archive_count(const opscope_archive *archive);
/* Entries are in the order of their names. OPSCOPE_ERR_NOT_FOUND past the last. */
OPSCOPE_API int opscope_archive_entry_at(const opscope_archive *archive, size_t index,
                                         opscope_archive_entry *out);
/* The index of an entry; OPSCOPE_ERR_NOT_FOUND (with no text set) without it. */
OPSCOPE_API int opscope_archive_find(const opscope_archive *archive, const char *name,
                                     size_t *index);
/* The content of an entry, valid while the archive is open, after a check of its CRC-32. Fails for
 * a deflated entry of more than 1 GiB. */
OPSCOPE_API int opscope_archive_read(opscope_archive *archive, const char *name, const void **data,
                                     size_t *bytes);
/* A tensor of one dimension over a stored entry, of as many elements as fit. It is a copy if the
 * file does not align it to its elements. The CRC-32 is not checked: that would read all pages. */
OPSCOPE_API int opscope_archive_tensor(opscope_archive *archive, const char *name,
                                       opscope_dtype dtype, opscope_tensor **out);

/* ---- writing ------------------------------------------------------------------------------ */

typedef struct opscope_archive_writer opscope_archive_writer;

/* Starts a new file beside `path`; `finish` gives it its name. Entries lie in the folder `folder`.
 */
OPSCOPE_API int opscope_archive_writer_open(const char *path, const char *folder,
                                            opscope_archive_writer **out);
/* Fails for a name that could leave the folder; `finish` fails if two entries have one name. */
OPSCOPE_API int opscope_archive_writer_add(opscope_archive_writer *writer, const char *name,
                                           const void *data, size_t bytes);
/* Adds the files of the hook in opscope/extra_files.h and the directory, and replaces the file at
 * `path`. On failure the old file is unchanged. Frees the writer in any case. */
OPSCOPE_API int opscope_archive_writer_finish(opscope_archive_writer *writer);
/* Removes the new file and frees the writer. NULL is allowed. */
OPSCOPE_API void opscope_archive_writer_cancel(opscope_archive_writer *writer);

OPSCOPE_END_DECLS

#endif
