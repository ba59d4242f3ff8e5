/* model/graph/sharing.h -- which values may share memory with others. */
#ifndef OPSCOPE_MODEL_GRAPH_SHARING_H
#define OPSCOPE_MODEL_GRAPH_SHARING_H

#include "model/graph/graph.h"

/* True if the node's outputs never share memory with its inputs. False: not known. */
OPSCOPE_API bool opscope__graph_is_fresh(const struct opscope__graph_node *node);
/* True if no operator can change a value of that type. */
OPSCOPE_API bool opscope__graph_is_immutable(const struct opscope__graph_type *type);

#endif
