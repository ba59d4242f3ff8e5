/* model/program/optimize.c -- see model/program/optimize.h. */
#include "model/program/optimize.h"

#include "model/graph/passes/fuse_elementwise.h"
#include "model/program/fused.h"
#include "model/program/passes.h"
#include "opscope/status.h"

/* Each makes work for the next. */
static const char *const names[] = {"fold_constants", "peephole", "merge_equal", "dead_code"};

int opscope__program_optimize(struct opscope__model_graph *graph)
{
    size_t changed;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct opscope__graph_pass *pass = opscope__graph_pass_find(names[i]);
        const int status = pass != NULL ? pass->run(graph, &changed) : OPSCOPE_ERR_INVALID;
        if (status != OPSCOPE_OK) {
            return status;
        }
    }
    return opscope__graph_fuse_elementwise(graph, opscope__is_fusible, &changed);
}
