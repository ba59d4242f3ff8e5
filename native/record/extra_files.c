/* record/extra_files.c -- the hook that adds files to archives, and the files that it adds. */
#define _GNU_SOURCE
#include "record/extra_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"

struct hook {
    opscope_extra_files_hook call;
    void *user;
    struct hook *earlier; /* kept: a save on another thread may be about to call it */
};

/* Owner: the thread that collects. Names and data are copies. */
struct opscope_extra_files {
    opscope_extra_file *files;
    size_t count;
};

static struct hook *current;   /* atomic: published by set, read by collect */
static void (*listener)(void); /* atomic: set once */
static uint64_t error_count;   /* atomic, a counter */

int opscope_set_export_extra_files_hook(opscope_extra_files_hook hook, void *user)
{
    struct hook *fresh = malloc(sizeof *fresh);
    if (fresh == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    struct hook *earlier = opscope__load_acquire(&current);
    do {
        *fresh = (struct hook){.call = hook, .user = user, .earlier = earlier};
        /* acq_rel: pairs with the acquire in collect, which reads what `fresh` points to. */
    } while (!opscope__replace_acq_rel(&current, &earlier, fresh));
    void (*changed)(void) = opscope__load_acquire(&listener); /* partner: the store in listen */
    if (changed != NULL) {
        changed();
    }
    return OPSCOPE_OK;
}

void opscope__extra_files_listen(void (*changed)(void))
{
    opscope__store_release(&listener, changed);
}

bool opscope__extra_files_are_hooked(void)
{
    const struct hook *hook = opscope__load_acquire(&current); /* partner: the exchange in set */
    return hook != NULL && hook->call != NULL;
}

uint64_t opscope_extra_files_error_count(void)
{
    return opscope__load_relaxed(&error_count);
}

static void free_file(opscope_extra_file *file)
{
    free((void *)(uintptr_t)file->name);
    free((void *)(uintptr_t)file->data);
}

static bool copy_file(const char *name, const void *data, size_t bytes, opscope_extra_file *out)
{
    char *name_copy = strdup(name);
    void *data_copy = malloc(bytes + 1);
    *out = (opscope_extra_file){.name = name_copy, .data = data_copy, .bytes = bytes};
    if (name_copy == NULL || data_copy == NULL) {
        free_file(out);
        return false;
    }
    if (bytes > 0) {
        memcpy(data_copy, data, bytes);
    }
    return true;
}

/* As a path below extra/ that every reader of archives finds: PyTorch cuts names off at 512 bytes.
 */
static bool is_name(const char *name)
{
    enum { NAME_LIMIT = 255 };
    if (name == NULL || strlen(name) > NAME_LIMIT) {
        return false;
    }
    for (const char *part = name;; part++) {
        const size_t bytes = strcspn(part, "/");
        if (bytes == 0 || (part[0] == '.' && (bytes == 1 || (bytes == 2 && part[1] == '.')))) {
            return false;
        }
        part += bytes;
        if (*part == '\0') {
            return true;
        }
    }
}

int opscope_extra_files_add(opscope_extra_files *files, const char *name, const void *data,
                            size_t bytes)
{
    if (files == NULL || !is_name(name) || (data == NULL && bytes > 0)) {
        return OPSCOPE_ERR_INVALID;
    }
    size_t i = 0;
    while (i < files->count && strcmp(files->files[i].name, name) != 0) {
        i++;
    }
    opscope_extra_file *grown = files->files;
    if (i == files->count) {
        grown = reallocarray(files->files, files->count + 1, sizeof *grown);
        if (grown == NULL) {
            return OPSCOPE_ERR_NO_MEMORY;
        }
        files->files = grown;
    }
    opscope_extra_file copy;
    if (!copy_file(name, data, bytes, &copy)) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    if (i < files->count) {
        free_file(&grown[i]);
    } else {
        files->count++;
    }
    grown[i] = copy;
    return OPSCOPE_OK;
}

opscope_extra_files *opscope_extra_files_collect(void)
{
    struct hook *hook = opscope__load_acquire(&current); /* partner: the exchange in set */
    if (hook == NULL || hook->call == NULL) {
        return NULL;
    }
    static _Thread_local bool is_collecting; /* a hook that saves an archive itself */
    opscope_extra_files *files = is_collecting ? NULL : calloc(1, sizeof *files);
    if (files == NULL) {
        return NULL;
    }
    is_collecting = true;
    if (hook->call(files, hook->user) < 0) {
        opscope__add_relaxed(&error_count, 1);
    }
    is_collecting = false;
    return files;
}

size_t opscope_extra_files_count(const opscope_extra_files *files)
{
    return files != NULL ? files->count : 0;
}

opscope_extra_file opscope_extra_files_at(const opscope_extra_files *files, size_t index)
{
    return files->files[index];
}

void opscope_extra_files_free(opscope_extra_files *files)
{
    if (files == NULL) {
        return;
    }
    for (size_t i = 0; i < files->count; i++) {
        free_file(&files->files[i]);
    }
    free(files->files);
    free(files);
}
