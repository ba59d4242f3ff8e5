/* model/graph/passes/peephole.h -- replaces what a few nodes compute by what they began with. */
#ifndef OPSCOPE_MODEL_GRAPH_PEEPHOLE_H
#define OPSCOPE_MODEL_GRAPH_PEEPHOLE_H

#include "model/graph/graph.h"

/* `*changed`: how many nodes lost uses of their outputs; dead code stays, for its own pass. 0 or a
 * negative status. peephole.c has the rules. The graph must be one that the verifier accepts, and
 * stays one in either case. */
OPSCOPE_API int opscope__graph_peephole(struct opscope__model_graph *graph, size_t *changed);

#endif
