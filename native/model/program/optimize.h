/* model/program/optimize.h -- the passes that a graph goes through before it is lowered. */
#ifndef OPSCOPE_MODEL_PROGRAM_OPTIMIZE_H
#define OPSCOPE_MODEL_PROGRAM_OPTIMIZE_H

#include "model/graph/graph.h"

/* Results keep their bits. The graph is one that the verifier accepts, and stays one. */
OPSCOPE_API int opscope__program_optimize(struct opscope__model_graph *graph);

#endif
