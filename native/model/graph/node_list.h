/* model/graph/node_list.h -- a block's list of nodes. */
#ifndef OPSCOPE_MODEL_GRAPH_NODE_LIST_H
#define OPSCOPE_MODEL_GRAPH_NODE_LIST_H

#include "model/graph/graph.h"

/* Puts a node that is in no block before `place`; NULL: at the end. */
static inline void opscope__graph_node_link(struct opscope__graph_block *block,
                                            struct opscope__graph_node *place,
                                            struct opscope__graph_node *node)
{
    node->block = block;
    node->next = place;
    node->previous = place != NULL ? place->previous : block->last;
    *(node->previous != NULL ? &node->previous->next : &block->first) = node;
    *(place != NULL ? &place->previous : &block->last) = node;
}

static inline void opscope__graph_node_unlink(struct opscope__graph_node *node)
{
    struct opscope__graph_block *block = node->block;
    *(node->previous != NULL ? &node->previous->next : &block->first) = node->next;
    *(node->next != NULL ? &node->next->previous : &block->last) = node->previous;
    node->block = NULL;
    node->previous = node->next = NULL;
}

#endif
