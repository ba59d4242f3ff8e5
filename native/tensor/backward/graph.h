/* tensor/backward/graph.h -- the part of the tape one backward walks through: a task for each node
 * and leaf, with the gradients that have arrived. It takes no locks: callers
 * serialize their calls.
 */
#ifndef OPSCOPE_TENSOR_BACKWARD_GRAPH_H
#define OPSCOPE_TENSOR_BACKWARD_GRAPH_H

#include "tensor/autograd/node.h"

/* A gradient that waits for its turn to be added. Of parallel walks only. */
struct opscope__delivery {
    opscope_tensor *gradient; /* owned; NULL: none */
    uint32_t output;
    bool is_here;
};

struct opscope__task {
    opscope_node *node;   /* either this */
    opscope_tensor *leaf; /* or this; references are held by the edges, or the roots */
    size_t index;         /* in the order of discovery */
    size_t pending;       /* edges to it that have not delivered yet */
    size_t output_count;
    bool is_idle;  /* no wanted gradient lies behind it: it does not run */
    bool leads_on; /* while that is found out */

    /* By opscope__graph_order. */
    size_t rank;     /* in the order of a serial walk */
    size_t expected; /* deliveries in all */
    /* Of parallel walks. */
    size_t next;                          /* the one to be added next */
    bool is_adding;                       /* a thread is adding deliveries */
    struct opscope__delivery *deliveries; /* in the order of a serial walk */
    uint32_t *turns;                      /* of the node's edges: each one's place in deliveries */

    opscope_tensor *arrived[]; /* owned; sums so far, for each output */
};

struct opscope__graph {
    struct opscope__task **tasks; /* in the order of discovery */
    size_t count;
    size_t capacity;
    struct opscope__task **map;   /* by address of node or leaf; its size is twice the capacity */
    struct opscope__task **ready; /* a heap: leaves, then nodes, the newest first */
    size_t ready_count;
    struct opscope__task **order; /* by rank; NULL before opscope__graph_order */
    size_t heavy_count;           /* nodes whose work is worth another thread */
};

/* From this many elements on a node may be worth another thread's waking: as many as a piece of a
 * kernel has. Of a custom node, whose work is not known, a quarter of that. */
enum { OPSCOPE__HEAVY_NODE = 65536, OPSCOPE__HEAVY_CUSTOM_NODE = OPSCOPE__HEAVY_NODE / 4 };

static inline bool opscope__task_is_heavy(const struct opscope__task *task)
{
    return task->node != NULL &&
           task->node->work >=
               (task->node->op != NULL ? OPSCOPE__HEAVY_NODE : OPSCOPE__HEAVY_CUSTOM_NODE);
}

/* Discovers all that is behind the edges. On failure the graph is to be destroyed as well. */
int opscope__graph_build(struct opscope__graph *graph, const struct opscope__edge *roots,
                         size_t count);
/* Finds the order in which a serial walk would run the tasks. With `turns`, which gets those of the
 * roots, also that in which it would deliver each gradient, and makes room for those that come out
 * of turn. */
int opscope__graph_order(struct opscope__graph *graph, const struct opscope__edge *roots,
                         size_t count, uint32_t *turns);
/* Leaves idle what leads to none of the wanted edges. After the order was found. */
void opscope__graph_prune(struct opscope__graph *graph, const struct opscope__edge *wanted,
                          size_t count);
void opscope__graph_destroy(struct opscope__graph *graph);
/* The task of that edge's target, or NULL. */
struct opscope__task *opscope__graph_find(const struct opscope__graph *graph,
                                          const struct opscope__edge *edge);
void opscope__graph_push(struct opscope__graph *graph, struct opscope__task *task);
struct opscope__task *opscope__graph_pop(struct opscope__graph *graph); /* NULL: none is ready */

#endif
