/* model/graph/clone.h -- copies of graphs and of their nodes. */
#ifndef OPSCOPE_MODEL_GRAPH_CLONE_H
#define OPSCOPE_MODEL_GRAPH_CLONE_H

#include "model/graph/graph.h"

/* A graph of its own that is printed as the same text, with the same limit of memory. NULL:
 * reported. Numbers the values. */
OPSCOPE_API struct opscope__model_graph *opscope__graph_clone(struct opscope__model_graph *graph);

/* Copies the nodes of a block, with their blocks, to the end of `into`, or before its node `place`.
 * The graph of `from` may be another one. `values` has for each value of that graph, by its number,
 * the one that the copies take instead; this function adds those that the copies produce. Names are
 * kept only with `keep_names`: two values of one graph must not share one. */
int opscope__graph_clone_nodes(const struct opscope__graph_block *from,
                               struct opscope__graph_block *into, struct opscope__graph_node *place,
                               struct opscope__graph_value **values, bool keep_names);

#endif
