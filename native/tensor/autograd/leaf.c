/* tensor/autograd/leaf.c -- what a single tensor has to do with autograd: requires_grad, grad,
 * detach; and the thread's grad mode. */
#include <pthread.h>
#include <string.h>

#include "opscope/debug_info.h"
#include "tensor/autograd/tape.h"
#include "tensor/autograd/watch.h"
#include "tensor/block.h"
#include "tensor/shape.h"

static _Thread_local bool is_off;

bool opscope_grad_mode(void)
{
    return !is_off;
}

static uintptr_t read_word(void)
{
    return is_off;
}

static uintptr_t exchange_word(uintptr_t word)
{
    uintptr_t before = is_off;
    is_off = word != 0;
    return before;
}

/* Forked tasks take it along. Until some thread turns it off it is on for all. */
static void carry(void)
{
    opscope_state_carry(read_word, exchange_word);
}

bool opscope_grad_mode_set(bool on)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    bool before = !is_off;
    if (!on) {
        pthread_once(&once, carry);
    }
    is_off = !on;
    return before;
}

struct opscope__grad *opscope__grad_of(opscope_tensor *tensor)
{
    if (tensor->grad == NULL) {
        tensor->grad = opscope__block_take(sizeof *tensor->grad);
        if (tensor->grad != NULL) {
            memset(tensor->grad, 0, sizeof *tensor->grad);
        }
    }
    return tensor->grad;
}

void opscope__grad_destroy(struct opscope__grad *grad)
{
    if (grad->node != NULL) {
        opscope_node_release(grad->node);
    }
    if (grad->watch != NULL) {
        opscope__watch_release(grad->watch);
    }
    opscope_tensor_release(grad->base);
    opscope_tensor_release(grad->grad);
    opscope__block_give(grad, sizeof *grad);
}

/* The tensor's part, up to date where it is a view; NULL: it has none. */
static struct opscope__grad *fresh(const opscope_tensor *tensor)
{
    if (tensor->grad != NULL && tensor->grad->base != NULL) {
        /* A view learns what it is the view of; to its holder it stays what it was. Where memory
         * runs out, it is asked again. */
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
