/* tensor/autograd/hook.c -- access to the gradient of a tensor: hooks, and retain_grad. */
#include <stdlib.h>

#include "tensor/autograd/grad.h"
#include "tensor/autograd/locks.h"
#include "tensor/core/shape.h"

/* The watch of a tensor that requires grad; for any other NULL, with an error. */
static struct opscope__watch *watch_for(const char *name, opscope_tensor *tensor)
{
    if (!opscope_tensor_requires_grad(tensor)) {
        opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: this tensor (sizes %s) does not require grad, so it gets no gradient", name,
            opscope__shape_text(tensor).text);
        return NULL;
    }
    struct opscope__grad *grad = tensor->grad;
    if (grad->watch == NULL) {
        grad->watch = opscope__watch_create(grad);
    }
    if (grad->watch == NULL) {
        opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: out of memory", name);
    }
    return grad->watch;
}

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
        return OPSCOPE_OK; /* a leaf always retains it */
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
