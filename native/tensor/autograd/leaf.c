/* tensor/autograd/leaf.c -- what a single tensor has to do with autograd: requires_grad, grad, detach;
 * and the thread's grad mode. */
#include <stdlib.h>

#include "tensor/autograd/tape.h"
#include "tensor/shape.h"

static _Thread_local bool is_off;

bool opscope_grad_mode(void)
{
    return !is_off;
}

bool opscope_grad_mode_set(bool on)
{
    bool before = !is_off;
    is_off = !on;
    return before;
}

struct opscope__grad *opscope__grad_of(opscope_tensor *tensor)
{
    if (tensor->grad == NULL) {
        tensor->grad = calloc(1, sizeof *tensor->grad);
    }
    return tensor->grad;
}

void opscope__grad_destroy(struct opscope__grad *grad)
{
    if (grad->node != NULL) {
        opscope_node_release(grad->node);
    }
    opscope_tensor_release(grad->grad);
    free(grad);
}

bool opscope_tensor_requires_grad(const opscope_tensor *tensor)
{
    return tensor->grad != NULL && tensor->grad->requires_grad;
}

int opscope_tensor_set_requires_grad(opscope_tensor *tensor, bool requires_grad)
{
    if (requires_grad && !opscope_dtype_is_floating(tensor->dtype)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "requires_grad: only floating tensors have gradients, this one is "
                                   "%s",
                                   opscope_dtype_name(tensor->dtype));
    }
    if (!requires_grad && !opscope_tensor_is_leaf(tensor)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "requires_grad: %s made this tensor; only that of a leaf can be "
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
    return OPSCOPE_OK;
}

bool opscope_tensor_is_leaf(const opscope_tensor *tensor)
{
    return tensor->grad == NULL || tensor->grad->node == NULL;
}

opscope_tensor *opscope_tensor_grad(const opscope_tensor *tensor)
{
    return tensor->grad != NULL ? tensor->grad->grad : NULL;
}

int opscope_tensor_set_grad(opscope_tensor *tensor, opscope_tensor *grad)
{
    if (grad != NULL && (grad->dtype != tensor->dtype || !opscope__same_sizes(grad, tensor))) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME, "grad: a %s gradient of sizes %s for a %s tensor of sizes %s; they "
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
    opscope_tensor *before = own->grad;
    own->grad = grad != NULL ? opscope_tensor_retain(grad) : NULL;
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
    return tensor->grad != NULL ? tensor->grad->node : NULL;
}
