/* model/graph/passes/dead_code.h -- removes nodes that nothing needs. */
#ifndef OPSCOPE_MODEL_GRAPH_DEAD_CODE_H
#define OPSCOPE_MODEL_GRAPH_DEAD_CODE_H

#include "model/graph/graph.h"

/* Removes the nodes whose outputs are not used and that have no effect besides (effect.h); returns
 * how many, not counting those in their blocks. An output of prim::If or prim::Loop stays as long
 * as another one of the node is used. The graph must be one that the verifier accepts, and stays
 * one. */
OPSCOPE_API size_t opscope__graph_remove_dead_code(struct opscope__model_graph *graph);

#endif
