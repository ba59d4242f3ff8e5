/* tensor/autograd/node.c -- a node's life after recording, and its attributes.
 *
 * Walks inside a node. `walks` counts the walks that use what the node saved; its highest bit marks
 * the node as spent. A walk enters with one compare-and-swap, which fails once the bit is set; a
 * walk that does not retain the graph sets the bit as it enters. The last walk that leaves a spent
 * node frees what the node saved. So, of any number of threads that walk through a node, none reads
 * freed memory, and only one of those that spend it gets in.
 */
#include "tensor/autograd/node.h"

#include "base/atomics.h"
#include "tensor/autograd/watch.h"
#include "tensor/memory/block.h"

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
    opscope__add_relaxed(&node->reference_count, 1);
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

/* Frees all that only backward reads. */
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
    uint32_t before = opscope__load_relaxed(&node->walks);
    /* Acquire and release in one. Partner: the subtraction in opscope__node_leave, whose last
     * caller frees the saved tensors and must see that every other walk has finished with them. */
    while ((before & SPENT) == 0 &&
           !opscope__replace_acq_rel(&node->walks, &before, (before + 1) | (spend ? SPENT : 0))) {
    }
    return (before & SPENT) == 0;
}

void opscope__node_leave(opscope_node *node)
{
    /* Partner: as above. */
    if (opscope__drop_reference(&node->walks) == SPENT + 1) {
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

/* Owner: the thread. Nodes to destroy after the current one: without this list, destroying a chain
 * of a million nodes would recurse a million calls deep. */
static _Thread_local struct {
    opscope_node *first;
    bool is_destroying;
} dead;

void opscope_node_release(opscope_node *node)
{
    /* The last release sees all that other threads did with the node. */
    if (opscope__drop_reference(&node->reference_count) != 1) {
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

struct opscope__watch *opscope__watch_of(const opscope_node *node, uint32_t output)
{
    struct opscope__watch *watch = opscope__load_acquire(&node->watches);
    while (watch != NULL && watch->output != output) {
        watch = watch->next;
    }
    return watch;
}
