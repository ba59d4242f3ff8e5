/* model/program/optimize.c -- see model/program/optimize.h. */
#include "model/program/optimize.h"

#include "model/program/passes.h"
#include "opscope/status.h"

/* Each makes work for the next. */
static const char *const names[] = {"fold_constants", "peephole",        "unroll_loops",
                                    "fold_constants", "peephole",        "merge_equal",
                                    "dead_code",      "fuse_elementwise"};

int opscope__program_optimize(struct opscope__model_graph *graph)
{
    int status = OPSCOPE_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && status == OPSCOPE_OK; i++) {
        const struct opscope__graph_pass *pass = opscope__graph_pass_find(names[i]);
        size_t changed;
        status = pass != NULL ? pass->run(graph, &changed) : OPSCOPE_ERR_INVALID;
    }
    return status;
}
