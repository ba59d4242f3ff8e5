/* model/graph/passes/inline_calls.h -- replaces calls of functions by their nodes. */
#ifndef OPSCOPE_MODEL_GRAPH_INLINE_CALLS_H
#define OPSCOPE_MODEL_GRAPH_INLINE_CALLS_H

#include "model/graph/graph.h"

enum { OPSCOPE__CALL_DEPTH_LIMIT = 200 };

struct opscope__graph_function {
    const char *name;
    struct opscope__model_graph *graph;
};

/* A copy of the function's graph in which each prim::CallFunction, and each in what it calls, is
 * replaced by the nodes of the function that it names. The functions are verified, and stay as they
 * are. Fails for calls that lead back to their own function, unknown names, and other types than
 * those of the function. */
OPSCOPE_API int opscope__graph_inline_calls(const struct opscope__graph_function *functions,
                                            size_t count, const char *name,
                                            struct opscope__model_graph **out);

#endif
