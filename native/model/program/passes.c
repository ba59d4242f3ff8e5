/* model/program/passes.c -- passes by their names. */
#include "model/program/passes.h"

#include <stdio.h>
#include <string.h>

#include "model/graph/passes/dead_code.h"
#include "model/graph/passes/fuse_elementwise.h"
#include "model/graph/passes/merge_equal.h"
#include "model/graph/passes/peephole.h"
#include "model/graph/passes/unroll_loops.h"
#include "model/program/fold_constants.h"
#include "model/program/fused.h"
#include "opscope/status.h"
#include "opscope/tensor.h"

static int dead_code(struct opscope__model_graph *graph, size_t *changed)
{
    *changed = opscope__graph_remove_dead_code(graph);
    return OPSCOPE_OK;
}

static int fuse_elementwise(struct opscope__model_graph *graph, size_t *changed)
{
    return opscope__graph_fuse_elementwise(graph, opscope__is_fusible, changed);
}

const struct opscope__graph_pass opscope__graph_passes[] = {
    {"dead_code", dead_code},
    {"fold_constants", opscope__graph_fold_constants},
    {"fuse_elementwise", fuse_elementwise},
    {"merge_equal", opscope__graph_merge_equal},
    {"peephole", opscope__graph_peephole},
    {"unroll_loops", opscope__graph_unroll_loops},
    {NULL, NULL},
};

const struct opscope__graph_pass *opscope__graph_pass_find(const char *name)
{
    char names[200] = "";
    const struct opscope__graph_pass *pass = opscope__graph_passes;
    for (; pass->name != NULL; pass++) {
        if (strcmp(pass->name, name) == 0) {
            return pass;
        }
        size_t bytes = strlen(names);
        snprintf(names + bytes, sizeof names - bytes, "%s%s", bytes > 0 ? ", " : "", pass->name);
    }
    opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "no pass is named \"%.60s\": %s", name, names);
    return NULL;
}
