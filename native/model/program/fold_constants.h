/* model/program/fold_constants.h -- computes once what is the same in each run. */
#ifndef OPSCOPE_MODEL_PROGRAM_FOLD_CONSTANTS_H
#define OPSCOPE_MODEL_PROGRAM_FOLD_CONSTANTS_H

#include "model/graph/graph.h"

/* The pass that is known as constant propagation: replaces nodes of kinds py::NAME that take
 * constants and produce a number, text or dtype by constants; prim::If of a constant condition by
 * the nodes of its branch; prim::Loop that makes no round by what it carries. A node that fails is
 * left alone, to fail in the run. `*changed`: how many nodes. 0 or a negative status. The graph
 * must be one that the verifier accepts, and stays one in either case. */
OPSCOPE_API int opscope__graph_fold_constants(struct opscope__model_graph *graph, size_t *changed);

#endif
