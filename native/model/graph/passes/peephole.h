/* model/graph/passes/peephole.h -- simplifies nodes by what is right before them. */
#ifndef OPSCOPE_MODEL_GRAPH_PEEPHOLE_H
#define OPSCOPE_MODEL_GRAPH_PEEPHOLE_H

#include "model/graph/graph.h"

/* Applies the rules of peephole.c until none fits; `*changed`: how often one did. What nothing uses
 * any more stays, for the removal of dead code. 0 or a negative status. The graph must be one that
 * the verifier accepts, and stays one in either case. */
OPSCOPE_API int opscope__graph_peephole(struct opscope__model_graph *graph, size_t *changed);

#endif
