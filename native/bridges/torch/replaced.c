/* torch/replaced.c -- see torch/replaced.h. */
#define _GNU_SOURCE
#include "bridges/torch/replaced.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/atomics.h"
#include "bridges/torch/symbols.h"

static bool find_slot(void *context, opscope__slot_function *slot, const char *name)
{
    struct opscope__torch_replaced *replaced = context;
    if (strcmp(name, replaced->symbol) != 0) {
        return true;
    }
    replaced->slot = slot;
    return false;
}

static const char *find_in(void *library, struct opscope__torch_replaced *replaced)
{
    struct link_map *map = NULL;
    struct opscope__pages pages;
    if (!opscope__torch_symbol(library, replaced->symbol, &replaced->theirs,
                               sizeof replaced->theirs)) {
        return "its library does not export the function";
    }
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || opscope__pages_read(&pages) != OPSCOPE_OK) {
        return "the process's memory map cannot be read";
    }
    if (opscope__slots_visit(map, &pages, find_slot, replaced) == OPSCOPE_OK &&
        replaced->slot != NULL) {
        replaced->is_read_only = !opscope__pages_grant(
            &pages, replaced->slot, sizeof *replaced->slot, PROT_READ | PROT_WRITE);
    }
    opscope__pages_release(&pages);
    return replaced->slot != NULL ? NULL
                                  : "its library does not call the function through the loader";
}

const char *opscope__torch_replaced_find(struct opscope__torch_replaced *replaced)
{
    if (replaced->slot == NULL) {
        void *library = opscope__torch_library(replaced->library);
        if (library == NULL) {
            return "its library is not loaded";
        }
        const char *reason = find_in(library, replaced);
        dlclose(library); /* PyTorch itself keeps it loaded */
        if (reason != NULL) {
            return reason;
        }
    }
    const opscope__slot_function present = opscope__load_relaxed(replaced->slot);
    return present == replaced->theirs || present == replaced->ours
               ? NULL
               : "its library calls another function in place of its own";
}

bool opscope__torch_replaced_lead(const struct opscope__torch_replaced *replaced, bool to_ours)
{
    return opscope__slot_replace(replaced->slot, replaced->is_read_only,
                                 to_ours ? replaced->theirs : replaced->ours,
                                 to_ours ? replaced->ours : replaced->theirs);
}
