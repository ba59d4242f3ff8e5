/* blas/attach.c -- finds the slots of a loaded library, verifies and replaces them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dlinfo, dladdr */
#endif
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomics.h"
#include "bridges/blas/attach.h"
#include "bridges/blas/slots.h"
#include "bridges/pages.h"
#include "bridges/slot.h"
#include "private/blas.h"

enum { LIBRARY_LIMIT = 32 };

/* A slot that was replaced. */
struct place {
    opscope__slot_function *slot;
    opscope__slot_function original;
    opscope__slot_function trampoline;
    bool is_read_only;
};

static struct place *places;
static size_t place_count;
static size_t place_capacity;

/* Libraries that a slot led to, each with a handle that is never closed: trampolines call them. */
static struct library {
    const void *start; /* as dladdr gives it */
    void *handle;
} libraries[LIBRARY_LIMIT];
static size_t library_count;

/* Libraries whose slots are replaced, each with a handle until the detach. */
static struct caller {
    const struct link_map *map;
    void *handle;
} *callers;
static size_t caller_count;

/* ---- where a slot leads ----------------------------------------------------------------------- */

static bool exports(const struct library *library, const char *name, opscope__slot_function code)
{
    return dlsym(library->handle, name) == (void *)code;
}

/* Whether the library with that code exports it under that name. `*is_own`: it is the library
 * `map`, where a slot leads before the loader has resolved it. */
static bool is_exported(const struct link_map *map, const char *name, opscope__slot_function code,
                        bool *is_own)
{
    *is_own = false;
    for (size_t i = 0; i < library_count; i++) {
        if (exports(&libraries[i], name, code)) {
            return true; /* without the loader's search through all symbols, below */
        }
    }
    Dl_info info;
    struct link_map *found = NULL;
    if (code == NULL || dladdr((void *)code, &info) == 0 || library_count == LIBRARY_LIMIT) {
        return false;
    }
    for (size_t i = 0; i < library_count; i++) {
        if (libraries[i].start == info.dli_fbase) {
            return false;
        }
    }
    struct library library = {.start = info.dli_fbase,
                              .handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)};
    if (library.handle == NULL) {
        return false;
    }
    *is_own = dlinfo(library.handle, RTLD_DI_LINKMAP, &found) == 0 && found == map;
    if (*is_own || found == NULL || !exports(&library, name, code)) {
        (void)dlclose(library.handle);
        return false;
    }
    libraries[library_count++] = library;
    return true;
}

/* ---- replacing --------------------------------------------------------------------------------- */

static struct place *add_place(void)
{
    if (place_count == place_capacity) {
        const size_t capacity = place_capacity != 0 ? place_capacity * 2 : 256;
        struct place *more = realloc(places, capacity * sizeof *more);
        if (more == NULL) {
            return NULL;
        }
        places = more;
        place_capacity = capacity;
    }
    return &places[place_count];
}

/* Whether it is one of those already, which counts. */
static bool is_replaced(const opscope__slot_function *slot, opscope_blas_slots *out)
{
    for (size_t i = 0; i < place_count; i++) {
        if (places[i].slot == slot) {
            out->replaced++;
            return true;
        }
    }
    return false;
}

static void attach_slot(const struct link_map *map, opscope__slot_function *slot, const char *name,
                        const struct opscope__blas_symbol *symbol,
                        const struct opscope__pages *pages, opscope_blas_slots *out)
{
    bool is_own;
    const opscope__slot_function found = opscope__load_relaxed(slot);
    if (!is_exported(map, name, found, &is_own)) {
        *(is_own ? &out->unresolved : &out->foreign) += 1;
        return;
    }
    struct place *place = add_place();
    const opscope__slot_function trampoline =
        place != NULL ? opscope__blas_trampoline(symbol, found, NULL) : NULL;
    if (trampoline == NULL) {
        out->full++;
        return;
    }
    *place =
        (struct place){slot, found, trampoline,
                       !opscope__pages_grant(pages, slot, sizeof *slot, PROT_READ | PROT_WRITE)};
    if (!opscope__slot_replace(slot, place->is_read_only, found, trampoline)) {
        out->read_only++;
        return;
    }
    place_count++;
    out->replaced++;
}

static bool is_kept(const struct link_map *map)
{
    size_t at = 0;
    while (at < caller_count && callers[at].map != map) {
        at++;
    }
    return at < caller_count;
}

/* Keeps the handle until the detach. Returns false if memory ran out. */
static bool keep(const struct link_map *map, void *handle)
{
    struct caller *more = realloc(callers, (caller_count + 1) * sizeof *more);
    if (more == NULL) {
        return false;
    }
    callers = more;
    callers[caller_count++] = (struct caller){map, handle};
    return true;
}

struct attachment {
    const struct link_map *map;
    bool is_known;
    const struct opscope__pages *pages;
    opscope_blas_slots *out;
};

static bool visit(void *context, opscope__slot_function *slot, const char *name)
{
    const struct attachment *one = context;
    struct opscope__blas_symbol symbol;
    if (opscope__blas_parse(name, &symbol) && !(one->is_known && is_replaced(slot, one->out))) {
        attach_slot(one->map, slot, name, &symbol, one->pages, one->out);
    }
    return true;
}

int opscope__blas_attach_library(const struct link_map *map, bool is_known,
                                 const struct opscope__pages *pages, opscope_blas_slots *out)
{
    struct attachment one = {map, is_known, pages, out};
    return opscope__slots_visit(map, pages, visit, &one);
}

static int attach_path(const char *path, const struct opscope__pages *pages,
                       opscope_blas_slots *out)
{
    struct link_map *map = NULL;
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    int status = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL
                     ? OPSCOPE_OK
                     : OPSCOPE_ERR_UNSUPPORTED;
    const bool is_known = status == OPSCOPE_OK && is_kept(map);
    if (status == OPSCOPE_OK && !is_known && !keep(map, handle)) {
        status = OPSCOPE_ERR_NO_MEMORY;
    }
    if (status == OPSCOPE_OK) {
        status = opscope__blas_attach_library(map, is_known, pages, out);
    }
    if (is_known || !is_kept(map)) {
        (void)dlclose(handle);
    }
    return status;
}

int opscope_blas_attach(opscope_blas_library *libraries_of_program, size_t count)
{
    if (!opscope__blas_trial()) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    struct opscope__pages pages;
    const int status = opscope__pages_read(&pages);
    if (status != OPSCOPE_OK) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        opscope_blas_library *library = &libraries_of_program[i];
        library->slots = (opscope_blas_slots){0};
        library->status = attach_path(library->path, &pages, &library->slots);
    }
    opscope__pages_release(&pages);
    return OPSCOPE_OK;
}

void opscope_blas_detach(void)
{
    for (size_t i = 0; i < place_count; i++) {
        (void)opscope__slot_replace(places[i].slot, places[i].is_read_only, places[i].trampoline,
                                    places[i].original);
    }
    for (size_t i = 0; i < caller_count; i++) {
        (void)dlclose(callers[i].handle);
    }
    free(places);
    free(callers);
    places = NULL;
    callers = NULL;
    place_count = place_capacity = caller_count = 0;
}
