/* tensor/backward/hooks.c -- showing a gradient on its way to those who asked for it.
 *
 * No lock is held while a hook runs.
 */
#include "tensor/backward/hooks.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "tensor/autograd/locks.h"
#include "tensor/backward/sum.h"
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"

/* The hooks of a watch as they are now, with a reference each, in memory of its own. */
static int hooks_of(const struct opscope__watch *watch, opscope_hook ***out, size_t *count)
{
    opscope__tape_lock();
    *count = 0;
    for (const opscope_hook *hook = watch->hooks; hook != NULL; hook = hook->next) {
        ++*count;
    }
    *out = *count != 0 ? malloc(*count * sizeof **out) : NULL;
    if (*out != NULL) {
        size_t at = 0;
        for (opscope_hook *hook = watch->hooks; hook != NULL; hook = hook->next) {
            opscope__add_relaxed(&hook->reference_count, 1);
            (*out)[at++] = hook;
        }
    }
    opscope__tape_unlock();
    return *count == 0 || *out != NULL
               ? OPSCOPE_OK
               : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
}

static int show_to(const opscope_hook *hook, opscope_tensor **gradient)
{
    opscope_tensor *instead = NULL;
    int status = hook->show(hook->user, *gradient, &instead);
    if (status != OPSCOPE_OK || instead == NULL) {
        return status;
    }
    if (instead->dtype != (*gradient)->dtype || !opscope__same_sizes(instead, *gradient)) {
        status = opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "backward: a hook returned a %s gradient of sizes %s in place of a %s one of sizes %s; they "
            "must be equal",
            opscope_dtype_name((opscope_dtype)instead->dtype), opscope__shape_text(instead).text,
            opscope_dtype_name((opscope_dtype)(*gradient)->dtype),
            opscope__shape_text(*gradient).text);
        opscope_tensor_release(instead);
        return status;
    }
    opscope_tensor_release(*gradient);
    *gradient = instead;
    return OPSCOPE_OK;
}

int opscope__watch_show(struct opscope__watch *watch, opscope_tensor **gradient)
{
    if (watch == NULL || *gradient == NULL) {
        return OPSCOPE_OK;
    }
    opscope_hook **hooks;
    size_t count;
    int status = hooks_of(watch, &hooks, &count);
    for (size_t i = 0; i < count && hooks != NULL; i++) {
        if (status == OPSCOPE_OK) {
            status = show_to(hooks[i], gradient);
        }
        opscope_hook_release(hooks[i]);
    }
    free(hooks);
    opscope__tape_lock();
    bool retains = watch->retains;
    opscope__tape_unlock();
    return status == OPSCOPE_OK && retains ? opscope__accumulate(watch, &watch->grad, *gradient)
                                           : status;
}
