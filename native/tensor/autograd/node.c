/* tensor/autograd/node.c -- a node's life after it was recorded, and asking it.
 *
 * Walks inside a node. `walks` counts the walks that are using what the node saved; its highest bit
 * says that the node is spent. A walk enters by one compare-and-swap, which fails once the bit is
 * set; a walk that does not retain the graph sets it on its way in. Whoever leaves a spent node as
 * the last frees what it saved. So of any number of threads that walk through one node none reads
 * freed memory, and of those that spend it exactly one gets in.
 */
#include "tensor/autograd/tape.h"
#include "tensor/autograd/watch.h"
#include "tensor/block.h"

#define SPENT 0x80000000u

const char *opscope_node_name(const opscope_node *node)
{
    return node->name;
}

size_t opscope_node_next_count(const opscope_node *node)
{
    return node->input_count;
}

opscope_node *opscope_node_next(const opscope_node *node, size_t index)
{
    return index < node->input_count ? node->edges[index].node : NULL;
}

opscope_node *opscope_node_retain(opscope_node *node)
{
    __atomic_fetch_add(&node->reference_count, 1, __ATOMIC_RELAXED);
    return node;
}

void opscope__edge_release(struct opscope__edge *edge)
{
    if (edge->node != NULL) {
        opscope_node_release(edge->node);
    }
    opscope_tensor_release(edge->leaf);
    *edge = (struct opscope__edge){NULL, NULL, 0};
}

/* Gives up what backward would have read. */
static void free_saved(opscope_node *node)
{
    for (size_t i = 0; i < node->input_count + node->saved_count; i++) {
        opscope_tensor_release(node->inputs[i]);
        node->inputs[i] = NULL;
    }
    if (node->release != NULL) {
        node->release(node->user);
        node->release = NULL;
    }
}

bool opscope__node_enter(opscope_node *node, bool spend)
{
    uint32_t before = __atomic_load_n(&node->walks, __ATOMIC_RELAXED);
    /* Acquire and release in one: partner is the subtraction in opscope__node_leave, whose last
     * caller must see every other walk done with the saved tensors before it frees them. */
    while ((before & SPENT) == 0 &&
           !__atomic_compare_exchange_n(&node->walks, &before, (before + 1) | (spend ? SPENT : 0),
                                        true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
    return (before & SPENT) == 0;
}

void opscope__node_leave(opscope_node *node)
{
    /* Partner: as above. */
    if (__atomic_sub_fetch(&node->walks, 1, __ATOMIC_ACQ_REL) == SPENT) {
        free_saved(node);
    }
}

static void destroy(opscope_node *node)
{
    free_saved(node);
    for (size_t i = 0; i < node->input_count; i++) {
        opscope__edge_release(&node->edges[i]);
    }
    for (size_t i = 0; i < node->output_count; i++) {
        opscope_tensor_release(node->outputs[i]);
    }
    while (node->watches != NULL) {
        struct opscope__watch *next = node->watches->next;
        opscope__watch_release(node->watches);
        node->watches = next;
    }
    opscope__block_give(node, node->bytes);
}

/* Owner: the thread. Nodes to destroy once the one being destroyed is: a chain of a million nodes
 * must not be a million calls deep. */
static _Thread_local struct {
    opscope_node *first;
    bool is_destroying;
} dead;

void opscope_node_release(opscope_node *node)
{
    /* The last release sees what all others did with the node. */
    if (__atomic_fetch_sub(&node->reference_count, 1, __ATOMIC_ACQ_REL) != 1) {
        return;
    }
    node->next_dead = dead.first;
    dead.first = node;
    if (dead.is_destroying) {
        return;
    }
    dead.is_destroying = true;
    while (dead.first != NULL) {
        opscope_node *next = dead.first;
        dead.first = next->next_dead;
        destroy(next);
    }
    dead.is_destroying = false;
}

/* ---- for garbage collectors ---------------------------------------------------------------------- */

int opscope__tensor_visit(const opscope_tensor *tensor, opscope__visit visit, void *arg)
{
    const struct opscope__grad *grad = tensor->grad;
    if (grad == NULL || __atomic_load_n(&tensor->reference_count, __ATOMIC_ACQUIRE) != 1) {
        return 0;
    }
    const opscope_node *node = grad->node;
    if (node != NULL && __atomic_load_n(&node->reference_count, __ATOMIC_ACQUIRE) != 1) {
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
