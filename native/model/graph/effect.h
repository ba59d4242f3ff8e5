/* model/graph/effect.h -- what running a node does besides producing its outputs. */
#ifndef OPSCOPE_MODEL_GRAPH_EFFECT_H
#define OPSCOPE_MODEL_GRAPH_EFFECT_H

#include "model/graph/graph.h"

enum opscope__graph_effect {
    OPSCOPE__GRAPH_PURE,
    /* It prints, raises, takes random numbers or the time, but changes no value of the graph. */
    OPSCOPE__GRAPH_OUTSIDE,
    /* It may change tensors, lists or modules that other nodes use. */
    OPSCOPE__GRAPH_CHANGES
};

/* A node does what the nodes in its blocks do. By itself, it is taken for pure only if its
 * namespace is aten, core, prim or py, it has outputs or blocks, it is no in-place operator (a name
 * that ends with '_', or __iadd__ and the like), takes no `out`, and no table lists it. An operator
 * that raises on wrong inputs is pure. */
OPSCOPE_API enum opscope__graph_effect opscope__graph_node_effect(
    const struct opscope__graph_node *node);
/* That of all nodes of a block. */
OPSCOPE_API enum opscope__graph_effect opscope__graph_block_effect(
    const struct opscope__graph_block *block);

#endif
