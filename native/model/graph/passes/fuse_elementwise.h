/* model/graph/passes/fuse_elementwise.h -- makes one node of elementwise operators that feed each
 * other: elementwise fusion. */
#ifndef OPSCOPE_MODEL_GRAPH_FUSE_ELEMENTWISE_H
#define OPSCOPE_MODEL_GRAPH_FUSE_ELEMENTWISE_H

#include "model/graph/graph.h"

/* Of a group, as the tensor core takes them (tensor/kernels/fused.h). */
enum { OPSCOPE__GRAPH_FUSED_NODES = 32, OPSCOPE__GRAPH_FUSED_INPUTS = 16 };

/* Replaces groups of at least two nodes of one block by nodes
 *
 *     %z : Tensor = prim::Fused(%x, %n)
 *       block0(%a : Tensor, %b : float):
 *         %c : Tensor = core::mul(%a, %b)
 *         %d : Tensor = core::relu(%c)
 *         -> (%d)
 *
 * whose block can be run as it stands, or in one pass over memory. `is_elementwise` says which
 * kinds of nodes take tensors and numbers and produce one new tensor, element by element.
 * `*fused`: how many groups there are. 0 or a negative status. The graph must be one that the
 * verifier accepts, and stays one in either case. */
OPSCOPE_API int opscope__graph_fuse_elementwise(struct opscope__model_graph *graph,
                                                bool (*is_elementwise)(const char *kind),
                                                size_t *fused);

#endif
