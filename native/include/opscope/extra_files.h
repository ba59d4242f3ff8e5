/* opscope/extra_files.h -- files that this process adds to every model archive that it saves.
 *
 * The idea: a program saves models in many places, but one place knows the facts that each file
 * should have (who made it, from which revision). A hook adds files; an archive keeps them below
 * `extra/`. A file that the program passes to a save itself takes precedence over one of the same
 * name.
 *
 * A hook that fails never spoils a save: the archive has what the hook added before, and the
 * failure is counted.
 *
 * Threads: any; archives saved at the same time call the hook at the same time. Forks: the child
 * keeps the hook.
 *
 *     static int add_facts(opscope_extra_files *files, void *user)
 *     {
 *         return opscope_extra_files_add(files, "producer.txt", "trainer-7", 9);
 *     }
 *     opscope_set_export_extra_files_hook(add_facts, NULL);
 */
#ifndef OPSCOPE_EXTRA_FILES_H
#define OPSCOPE_EXTRA_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

typedef struct opscope_extra_files opscope_extra_files;

/* Returns a negative opscope_status on failure. */
typedef int (*opscope_extra_files_hook)(opscope_extra_files *files, void *user);

/* Sets the hook, of which there is one; NULL removes it. A save that has begun may still call the
 * earlier hook, so hook and `user` must stay valid. Returns OPSCOPE_ERR_NO_MEMORY, or 0. */
OPSCOPE_API int opscope_set_export_extra_files_hook(opscope_extra_files_hook hook, void *user);
/* For hooks: copies the file's name and content. A later file of the same name replaces it. A name
 * is a path below `extra/`, of at most 255 bytes, without empty parts, "." and ".."; otherwise
 * ERR_INVALID. */
OPSCOPE_API int opscope_extra_files_add(opscope_extra_files *files, const char *name,
                                        const void *data, size_t bytes);

/* ---- for writers of archives ---------------------------------------------------------------- */

typedef struct opscope_extra_file {
    const char *name; /* valid until the files are freed */
    const void *data;
    size_t bytes;
} opscope_extra_file;

/* Calls the hook. NULL if there is no hook, or no memory, or if the hook itself is calling. */
OPSCOPE_API opscope_extra_files *opscope_extra_files_collect(void);
OPSCOPE_API size_t opscope_extra_files_count(const opscope_extra_files *files); /* NULL: 0 */
/* `index` must be below the count. */
OPSCOPE_API opscope_extra_file opscope_extra_files_at(const opscope_extra_files *files,
                                                      size_t index);
OPSCOPE_API void opscope_extra_files_free(opscope_extra_files *files); /* NULL is allowed */
/* Number of times a hook has failed in this process. */
OPSCOPE_API uint64_t opscope_extra_files_error_count(void);

OPSCOPE_END_DECLS

#endif
