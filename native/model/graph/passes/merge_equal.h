/* model/graph/passes/merge_equal.h -- merges nodes that compute the same: the elimination of common
 * subexpressions. */
#ifndef OPSCOPE_MODEL_GRAPH_MERGE_EQUAL_H
#define OPSCOPE_MODEL_GRAPH_MERGE_EQUAL_H

#include "model/graph/graph.h"

/* Lets one node do the work of later equal ones, of its own block or of blocks inside it;
 * `*merged`: how many it removed. merge_equal.c says which nodes it leaves alone. 0 or a negative
 * status. The graph must be one that the verifier accepts, and stays one in either case. */
OPSCOPE_API int opscope__graph_merge_equal(struct opscope__model_graph *graph, size_t *merged);

#endif
