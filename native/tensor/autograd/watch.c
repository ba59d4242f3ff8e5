/* tensor/autograd/watch.c -- hooks on tensors, and gradients that tensors keep (retain_grad).
 *
 * One lock guards every list here; it is never held while a hook runs, while memory is freed by
 * somebody else's function, or while an operator is called.
 */
#include "tensor/autograd/watch.h"

#include <stdlib.h>

#include "tensor/autograd/locks.h"
#include "tensor/autograd/sum.h"
#include "tensor/shape.h"

struct opscope_hook {
    uint32_t reference_count; /* atomic: one for the caller, one for the list, one for each walk */
    struct opscope__watch *watch; /* whose list it is in; NULL: in none. The lock's, as is next */
    opscope_hook *next;
    int (*show)(void *user, opscope_tensor *gradient, opscope_tensor **out);
    void (*release)(void *user);
    void *user;
};

void opscope_hook_release(opscope_hook *hook)
{
    /* The last release sees what all others did with it. */
    if (__atomic_fetch_sub(&hook->reference_count, 1, __ATOMIC_ACQ_REL) == 1) {
        if (hook->release != NULL) {
            hook->release(hook->user);
        }
        free(hook);
    }
}

void opscope_hook_remove(opscope_hook *hook)
{
    bool found = false;
    opscope__tape_lock();
    if (hook->watch != NULL) {
        opscope_hook **at = &hook->watch->hooks;
        while (*at != hook) {
            at = &(*at)->next;
        }
        *at = hook->next;
        hook->watch = NULL;
        found = true;
    }
    opscope__tape_unlock();
    if (found) {
        opscope_hook_release(hook);
    }
}

/* ---- watches -------------------------------------------------------------------------------- */

void opscope__watch_release(struct opscope__watch *watch)
{
    opscope__tape_lock();
    bool is_last = --watch->reference_count == 0;
    for (opscope_hook *hook = watch->hooks; hook != NULL && is_last; hook = hook->next) {
        hook->watch = NULL;
    }
    opscope__tape_unlock();
    if (!is_last) {
        return;
    }
    for (opscope_hook *hook = watch->hooks, *next; hook != NULL; hook = next) {
        next = hook->next;
        opscope_hook_release(hook);
    }
    opscope_tensor_release(watch->grad);
    free(watch);
}

/* A watch for the tensor, known to its node as well. */
static struct opscope__watch *create(struct opscope__grad *grad)
{
    struct opscope__watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL) {
        return NULL;
    }
    watch->reference_count = grad->node != NULL ? 2 : 1;
    watch->output = grad->output;
    opscope__tape_lock();
    if (grad->node != NULL) {
        watch->next = grad->node->watches;
        /* Partner: the load in opscope__watch_of. */
        __atomic_store_n(&grad->node->watches, watch, __ATOMIC_RELEASE);
    }
    opscope__tape_unlock();
    return watch;
}

struct opscope__watch *opscope__watch_of(const opscope_node *node, uint32_t output)
{
    struct opscope__watch *watch = __atomic_load_n(&node->watches, __ATOMIC_ACQUIRE);
    while (watch != NULL && watch->output != output) {
        watch = watch->next;
    }
    return watch;
}

opscope_tensor *opscope__watch_grad(struct opscope__watch *watch)
{
    return watch->retains ? watch->grad : NULL;
}

/* The watch of a tensor that requires grad; NULL with an error for any other. */
static struct opscope__watch *watch_for(const char *name, opscope_tensor *tensor)
{
    if (!opscope_tensor_requires_grad(tensor)) {
        opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: this tensor (sizes %s) does not require grad, no gradient comes by", name,
            opscope__shape_text(tensor).text);
        return NULL;
    }
    struct opscope__grad *grad = tensor->grad;
    if (grad->watch == NULL) {
        grad->watch = create(grad);
    }
    if (grad->watch == NULL) {
        opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: out of memory", name);
    }
    return grad->watch;
}

void opscope__watch_renew(struct opscope__grad *grad)
{
    struct opscope__watch *old = grad->watch;
    grad->watch = NULL;
    if (old->retains) {
        grad->watch = create(grad);
        if (grad->watch != NULL) {
            grad->watch->retains = true;
            grad->watch->grad = old->grad;
            old->grad = NULL;
        }
        old->retains = false;
    }
    opscope__watch_release(old);
}

int opscope__watch_visit(const struct opscope__watch *watch, bool by_node, opscope__visit visit,
                         void *arg)
{
    int result = 0;
    opscope__tape_lock();
    bool is_alone = watch->reference_count == (by_node ? 2 : 1);
    for (const opscope_hook *hook = watch->hooks; hook != NULL && is_alone && result == 0;
         hook = hook->next) {
        if (hook->release != NULL) {
            result = visit(hook->release, hook->user, arg);
        }
    }
    opscope__tape_unlock();
    return result;
}

/* ---- what tensors offer ------------------------------------------------------------------------ */

int opscope_tensor_register_hook(opscope_tensor *tensor,
                                 int (*show)(void *user, opscope_tensor *gradient,
                                             opscope_tensor **out),
                                 void (*release)(void *user), void *user, opscope_hook **out)
{
    struct opscope__watch *watch = watch_for("register_hook", tensor);
    opscope_hook *hook = watch != NULL ? malloc(sizeof *hook) : NULL;
    if (hook == NULL) {
        if (release != NULL) {
            release(user);
        }
        return watch == NULL
                   ? OPSCOPE_ERR_INVALID
                   : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "register_hook: out of memory");
    }
    *hook = (opscope_hook){2, watch, NULL, show, release, user};
    opscope__tape_lock();
    opscope_hook **at = &watch->hooks;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = hook;
    opscope__tape_unlock();
    *out = hook;
    return OPSCOPE_OK;
}

int opscope_tensor_retain_grad(opscope_tensor *tensor)
{
    if (opscope_tensor_requires_grad(tensor) && opscope_tensor_is_leaf(tensor)) {
        return OPSCOPE_OK; /* it does so anyway */
    }
    struct opscope__watch *watch = watch_for("retain_grad", tensor);
    if (watch == NULL) {
        return OPSCOPE_ERR_INVALID;
    }
    opscope__tape_lock();
    watch->retains = true;
    opscope__tape_unlock();
    return OPSCOPE_OK;
}

bool opscope_tensor_retains_grad(const opscope_tensor *tensor)
{
    return tensor->grad != NULL && tensor->grad->watch != NULL && tensor->grad->watch->retains;
}

/* ---- in a walk ----------------------------------------------------------------------------------- */

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
            __atomic_fetch_add(&hook->reference_count, 1, __ATOMIC_RELAXED);
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
