/* tensor/autograd/node.c -- a node's life after it was recorded, and asking it. */
#include <stdlib.h>

#include "tensor/autograd/tape.h"

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

void opscope__node_spend(opscope_node *node)
{
    node->is_spent = true;
    for (size_t i = 0; i < node->saved_count; i++) {
        opscope_tensor_release(node->saved[i].tensor);
        node->saved[i].tensor = NULL;
    }
    for (size_t i = 0; i < node->input_count && node->inputs != NULL; i++) {
        opscope_tensor_release(node->inputs[i]);
        node->inputs[i] = NULL;
    }
    if (node->release != NULL) {
        node->release(node->user);
        node->release = NULL;
    }
}

static void destroy(opscope_node *node)
{
    opscope__node_spend(node);
    for (size_t i = 0; i < node->input_count; i++) {
        opscope__edge_release(&node->edges[i]);
    }
    for (size_t i = 0; i < node->output_count; i++) {
        opscope_tensor_release(node->outputs[i]);
    }
    free(node);
}

/* Owner: the thread. Nodes to destroy once the one being destroyed is: a chain of a million nodes must
 * not be a million calls deep. */
static _Thread_local struct {
    opscope_node *first;
    bool is_destroying;
} dead;

void opscope_node_release(opscope_node *node)
{
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
