/* model/program/passes.h -- passes by their names. */
#ifndef OPSCOPE_MODEL_PROGRAM_PASSES_H
#define OPSCOPE_MODEL_PROGRAM_PASSES_H

#include "model/graph/graph.h"

struct opscope__graph_pass {
    const char *name;
    /* `*changed`: how many nodes it removed or replaced. 0 or a negative status. The graph must be
     * one that the verifier accepts, and stays one in either case. */
    int (*run)(struct opscope__model_graph *graph, size_t *changed);
};

/* A line without a name ends the table. */
OPSCOPE_API extern const struct opscope__graph_pass opscope__graph_passes[];
/* NULL: reported, with the names of all passes. */
OPSCOPE_API const struct opscope__graph_pass *opscope__graph_pass_find(const char *name);

#endif
