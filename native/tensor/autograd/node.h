/* tensor/autograd/node.h -- nodes: what an operator saves for backward.
 *
 * A node is immutable once recorded, except that it frees what it saved when it is spent (node.c).
 * It keeps aliases of tensors (the same storage without autograd state), so it never keeps itself
 * alive.
 */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_NODE_H
#define OPSCOPE_TENSOR_AUTOGRAD_NODE_H

#include "opscope/autograd.h"

struct opscope__watch;

/* The destination of an input's gradient: a node's output, a leaf, or nothing. */
struct opscope__edge {
    opscope_node *node;
    opscope_tensor *leaf;
    uint32_t output;
};

struct opscope_node {
    uint32_t reference_count; /* atomic */
    uint32_t walks;           /* atomic: the walks inside, and a bit for spent; node.c */
    const char *name;
    const opscope_op *range;
    int64_t sequence_nr;
    uint64_t thread_id;
    int64_t work;                   /* the largest number of elements of an input or output */
    const opscope_operator *op;     /* NULL for a custom node */
    struct opscope__watch *watches; /* of its outputs; atomic, changed under the tape lock */
    opscope_node *next_dead;        /* used during destruction */

    /* Set in a custom node. */
    int (*custom)(void *user, opscope_tensor *const *gradients, opscope_tensor **out);
    void (*release)(void *user); /* NULL: none, or already called */
    void *user;

    size_t bytes; /* of the node with all its arrays */
    size_t input_count, saved_count, output_count, argument_count;

    opscope_tensor **inputs;     /* an alias, an outline or NULL each; the saved aliases follow */
    uint64_t *versions;          /* of the inputs' storages */
    opscope_tensor **outputs;    /* outlines */
    opscope_argument *arguments; /* their tensors point into `inputs` */
    struct opscope__edge edges[];
};

void opscope__edge_release(struct opscope__edge *edge);
/* The watch of that output of the node, or NULL; a borrowed reference. */
struct opscope__watch *opscope__watch_of(const opscope_node *node, uint32_t output);

/* ---- a walk inside a node -------------------------------------------------------------------- */

/* Lets a walk in: what the node saved stays until the walk leaves. With `spend`, no later walk gets
 * in. False if the node is spent. */
bool opscope__node_enter(opscope_node *node, bool spend);
void opscope__node_leave(opscope_node *node);

#endif
