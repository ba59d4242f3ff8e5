/* tensor/autograd/graph.h -- the part of the tape one backward walks through: a task for each node and
 * leaf, with the gradients that have arrived. Only engine.c uses it; one thread at a time. */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_GRAPH_H
#define OPSCOPE_TENSOR_AUTOGRAD_GRAPH_H

#include "tensor/autograd/tape.h"

struct opscope__task {
    opscope_node *node;   /* either this */
    opscope_tensor *leaf; /* or this; references are held by the edges, or the roots */
    size_t index;         /* in the order of discovery */
    size_t pending;       /* edges to it that have not delivered yet */
    opscope_tensor *arrived[OPSCOPE_OUTPUT_LIMIT]; /* owned; sums so far, for each output */
};

struct opscope__graph {
    struct opscope__task **tasks; /* in the order of discovery */
    size_t count;
    size_t capacity;
    struct opscope__task **map; /* by address of node or leaf; its size is twice the capacity */
    struct opscope__task **ready; /* a heap: leaves, then nodes, the newest first */
    size_t ready_count;
};

/* Discovers all that is behind the edges. On failure the graph is to be destroyed as well. */
int opscope__graph_build(struct opscope__graph *graph, const struct opscope__edge *roots,
                         size_t count);
void opscope__graph_destroy(struct opscope__graph *graph);
/* The task of that edge's target, or NULL. */
struct opscope__task *opscope__graph_find(const struct opscope__graph *graph,
                                          const struct opscope__edge *edge);
void opscope__graph_push(struct opscope__graph *graph, struct opscope__task *task);
struct opscope__task *opscope__graph_pop(struct opscope__graph *graph); /* NULL: none is ready */

#endif
