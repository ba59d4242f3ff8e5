/* model/graph/passes/unroll_loops.h -- replaces short loops by their rounds. */
#ifndef OPSCOPE_MODEL_GRAPH_UNROLL_LOOPS_H
#define OPSCOPE_MODEL_GRAPH_UNROLL_LOOPS_H

#include "model/graph/graph.h"

enum {
    OPSCOPE__UNROLLED_ROUNDS_LIMIT = 8,
    OPSCOPE__UNROLLED_NODES_LIMIT = 256 /* of all rounds of one loop */
};

/* Replaces each loop whose number of rounds is a small constant, and whose conditions are all
 * constantly true, by the nodes of its rounds, inner loops first; `*changed`: how many loops. 0 or
 * a negative status. The graph must be one that the verifier accepts, and stays one in either
 * case. */
OPSCOPE_API int opscope__graph_unroll_loops(struct opscope__model_graph *graph, size_t *changed);

#endif
