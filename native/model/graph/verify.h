/* model/graph/verify.h -- what holds in each graph that is run.
 *
 * - Each use follows the value's definition, in the same block or in a block inside it. What a
 *   node produces, its own blocks do not see.
 * - No two values have one name.
 * - Each value knows all its uses and no others; each node and block knows where it is.
 * - prim::If takes one bool and has two blocks without inputs; both return as many values as it
 *   produces, of the same types.
 * - prim::Loop takes the greatest number of trips (int), the first condition (bool) and the values
 *   that it carries. Its block takes the index of the trip (int) and the carried values, and
 *   returns the next condition (bool) and the next carried values. It produces the last ones.
 *   All are of the same types, except that where a block returns or a loop takes a value, an
 *   Optional accepts None and its part's type.
 * - prim::Constant takes nothing and produces one value, whose type its attribute `value` fits.
 *   A Dtype is given by its name; an Optional is None or of its part's type.
 *
 * Not here: what other operators take and produce.
 */
#ifndef OPSCOPE_MODEL_GRAPH_VERIFY_H
#define OPSCOPE_MODEL_GRAPH_VERIFY_H

#include "model/graph/graph.h"

/* 0, or OPSCOPE_ERR_INVALID with a text that names the node, such as "%3 = prim::If: ...". Numbers
 * the values. */
OPSCOPE_API int opscope__graph_verify(struct opscope__model_graph *graph);

#endif
