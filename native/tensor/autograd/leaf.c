/* tensor/autograd/leaf.c -- requires_grad, grad and detach of a tensor. */
#include "tensor/autograd/view.h"
#include "tensor/core/shape.h"

/* The tensor's autograd state, up to date if it is a view; NULL if it has none. */
static struct opscope__grad *fresh(const opscope_tensor *tensor)
{
    if (tensor->grad != NULL && tensor->grad->base != NULL) {
        /* Brings a view's history up to date; the caller still sees the same tensor. If memory runs
         * out, the next call tries again. */
        opscope__view_refresh((opscope_tensor *)(uintptr_t)tensor);
    }
    return tensor->grad;
}

bool opscope_tensor_requires_grad(const opscope_tensor *tensor)
{
    const struct opscope__grad *grad = fresh(tensor);
    return grad != NULL && grad->requires_grad;
}

int opscope_tensor_set_requires_grad(opscope_tensor *tensor, bool requires_grad)
{
    if (requires_grad && !opscope_dtype_is_floating(tensor->dtype)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "requires_grad: only floating tensors have gradients, this one is "
            "%s",
            opscope_dtype_name(tensor->dtype));
    }
    if (!requires_grad && !opscope_tensor_is_leaf(tensor)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "requires_grad: %s computed this tensor; only for a leaf can it be "
            "turned off, use detach()",
            tensor->grad->node->name);
    }
    if (requires_grad == opscope_tensor_requires_grad(tensor)) {
        return OPSCOPE_OK;
    }
    struct opscope__grad *grad = opscope__grad_of(tensor);
    if (grad == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "requires_grad: out of memory");
    }
    grad->requires_grad = requires_grad;
    /* As a leaf it has a history of its own. */
    opscope_tensor *base = grad->base;
    grad->base = NULL;
    grad->view = OPSCOPE__NO_VIEW;
    opscope_tensor_release(base);
    return OPSCOPE_OK;
}

bool opscope_tensor_is_leaf(const opscope_tensor *tensor)
{
    const struct opscope__grad *grad = fresh(tensor);
    return grad == NULL || grad->node == NULL;
}

opscope_tensor *opscope_tensor_grad(const opscope_tensor *tensor)
{
    const struct opscope__grad *grad = tensor->grad;
    opscope_tensor *kept =
        grad != NULL && grad->watch != NULL ? opscope__watch_grad(grad->watch) : NULL;
    return kept != NULL ? kept : grad != NULL ? grad->grad : NULL;
}

int opscope_tensor_set_grad(opscope_tensor *tensor, opscope_tensor *grad)
{
    if (grad != NULL && (grad->dtype != tensor->dtype || !opscope__same_sizes(grad, tensor))) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "grad: a %s gradient of sizes %s for a %s tensor of sizes %s; they "
            "must be equal",
            opscope_dtype_name(grad->dtype), opscope__shape_text(grad).text,
            opscope_dtype_name(tensor->dtype), opscope__shape_text(tensor).text);
    }
    if (grad == NULL && tensor->grad == NULL) {
        return OPSCOPE_OK;
    }
    struct opscope__grad *own = opscope__grad_of(tensor);
    if (own == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "grad: out of memory");
    }
    opscope_tensor **kept =
        own->watch != NULL && own->watch->retains ? &own->watch->grad : &own->grad;
    opscope_tensor *before = *kept;
    *kept = grad != NULL ? opscope_tensor_retain(grad) : NULL;
    opscope_tensor_release(before);
    return OPSCOPE_OK;
}

int opscope_tensor_detach(opscope_tensor *tensor, opscope_tensor **out)
{
    opscope_tensor *made;
    int status = opscope__tensor_alias(tensor, &made);
    if (status == OPSCOPE_OK) {
        made->is_view = true;
        *out = made;
    }
    return status;
}

opscope_node *opscope_tensor_grad_fn(const opscope_tensor *tensor)
{
    const struct opscope__grad *grad = fresh(tensor);
    return grad != NULL ? grad->node : NULL;
}
