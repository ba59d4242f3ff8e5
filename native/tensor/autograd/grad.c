/* tensor/autograd/grad.c -- the autograd state of a tensor: created on demand, freed with the
 * tensor. */
#include "tensor/autograd/grad.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "tensor/autograd/locks.h"
#include "tensor/memory/block.h"

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

struct opscope__edge opscope__edge_to(opscope_tensor *tensor)
{
    struct opscope__edge edge = {NULL, NULL, 0};
    if (tensor == NULL || !opscope__needs_gradient(tensor)) {
        return edge;
    }
    const struct opscope__grad *grad = tensor->grad;
    if (grad->node == NULL) {
        edge.leaf = opscope_tensor_retain(tensor);
    } else {
        edge.node = opscope_node_retain(grad->node);
        edge.output = grad->output;
    }
    return edge;
}

static void destroy(struct opscope__grad *grad)
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

static void __attribute__((constructor)) load(void)
{
    opscope__tensor_set_grad_destructor(destroy);
}

/* ---- watches -------------------------------------------------------------------------------- */

struct opscope__watch *opscope__watch_create(struct opscope__grad *grad)
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
        opscope__store_release(&grad->node->watches, watch);
    }
    opscope__tape_unlock();
    return watch;
}

void opscope__watch_renew(struct opscope__grad *grad)
{
    struct opscope__watch *old = grad->watch;
    grad->watch = NULL;
    if (old->retains) {
        grad->watch = opscope__watch_create(grad);
        if (grad->watch != NULL) {
            grad->watch->retains = true;
            grad->watch->grad = old->grad;
            old->grad = NULL;
        }
        old->retains = false;
    }
    opscope__watch_release(old);
}

/* ---- for garbage collectors ------------------------------------------------------------------ */

int opscope__tensor_visit(const opscope_tensor *tensor, opscope__visit visit, void *arg)
{
    const struct opscope__grad *grad = tensor->grad;
    if (grad == NULL || opscope__load_acquire(&tensor->reference_count) != 1) {
        return 0;
    }
    const opscope_node *node = grad->node;
    if (node != NULL && opscope__load_acquire(&node->reference_count) != 1) {
        return 0;
    }
    int result =
        grad->watch != NULL ? opscope__watch_visit(grad->watch, node != NULL, visit, arg) : 0;
    if (result == 0 && node != NULL && node->release != NULL) {
        result = visit(node->release, node->user, arg);
    }
    return result;
}

void opscope__tensor_forget(opscope_tensor *tensor)
{
    struct opscope__grad *grad = tensor->grad;
    if (grad == NULL) {
        return;
    }
    opscope_node *node = grad->node;
    struct opscope__watch *watch = grad->watch;
    grad->node = NULL;
    grad->watch = NULL;
    grad->requires_grad = false;
    if (watch != NULL) {
        opscope__watch_release(watch);
    }
    if (node != NULL) {
        opscope_node_release(node);
    }
}
