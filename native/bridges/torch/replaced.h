/* torch/replaced.h -- functions of ours in place of PyTorch's own.
 *
 * A library of PyTorch's calls a function that it exports through a slot (bridges/slot.h), also if
 * the function is its own. The slot is replaced only if it leads to that function. Calls in flight
 * finish normally. Callers take turns; forks need nothing, because slots are per process.
 */
#ifndef OPSCOPE_BRIDGES_TORCH_REPLACED_H
#define OPSCOPE_BRIDGES_TORCH_REPLACED_H

#include <stdbool.h>

#include "bridges/slot.h"

/* Set the first three; `theirs` and what follows is constant once it is found. */
struct opscope__torch_replaced {
    const char *library; /* the start of its file's name, as for opscope__torch_library */
    const char *symbol;
    opscope__slot_function ours;
    opscope__slot_function theirs;
    opscope__slot_function *slot; /* NULL: not found */
    bool is_read_only;            /* its page, except during a change */
};

/* Finds PyTorch's function and the slot. Call it after the function was called: the loader may set
 * the slot only then. NULL, or a short reason why ours cannot take its place. */
const char *opscope__torch_replaced_find(struct opscope__torch_replaced *replaced);
/* Whether the slot led to the other function before, and leads to the wanted one now. */
bool opscope__torch_replaced_lead(const struct opscope__torch_replaced *replaced, bool to_ours);

#endif
