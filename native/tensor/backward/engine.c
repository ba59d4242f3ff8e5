/* tensor/backward/engine.c -- walking backward: every node once, when all its gradients have
 * arrived.
 *
 * The order is fixed, the newest node first, and so are the sums. Walked alone, on the thread that
 * called backward, debug info and local callbacks are that thread's by themselves;
 * parallel_backward.c lets others help.
 */
#include <stdlib.h>

#include "tensor/autograd/view.h"
#include "tensor/backward/deliver.h"
#include "tensor/backward/parallel_backward.h"
#include "tensor/backward/task.h"
#include "tensor/core/shape.h"
#include "tensor/kernels/convert.h"

/* ---- roots ---------------------------------------------------------------------------------------- */

static int first_gradient(opscope_tensor *root, opscope_tensor *given, opscope_tensor **out)
{
    if (given != NULL) {
        *out = opscope_tensor_retain(given);
        return OPSCOPE_OK;
    }
    if (root->count != 1) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "backward: a gradient is made up only for a tensor of one element, "
            "this one has sizes %s; pass gradient=",
            opscope__shape_text(root).text);
    }
    int status =
        opscope__tensor_empty(root->dims, opscope__sizes(root), (opscope_dtype)root->dtype, out);
    if (status == OPSCOPE_OK) {
        opscope__fill(*out, &(opscope_argument){OPSCOPE_ARGUMENT_INT, 0, {.integer = 1}});
    }
    return status;
}

static int walk_alone(struct opscope__walk *walk)
{
    int status = OPSCOPE_OK;
    struct opscope__task *task;
    while (status == OPSCOPE_OK && (task = opscope__graph_pop(&walk->graph)) != NULL) {
        status = opscope__run_task(walk, task);
    }
    return status;
}

static int walk_from(struct opscope__walk *walk, opscope_tensor *const *roots,
                     opscope_tensor *const *gradients, const struct opscope__edge *edges,
                     size_t count, uint32_t *turns)
{
    int status = opscope__graph_build(&walk->graph, edges, count);
    bool in_parallel = status == OPSCOPE_OK && opscope__parallel_backward_is_wanted(&walk->graph);
    if (status == OPSCOPE_OK && (in_parallel || walk->wanted != NULL)) {
        status = opscope__graph_order(&walk->graph, edges, count, in_parallel ? turns : NULL);
    }
    if (status == OPSCOPE_OK && walk->wanted != NULL) {
        opscope__graph_prune(&walk->graph, walk->wanted, walk->wanted_count);
    }
    if (status == OPSCOPE_OK && in_parallel) {
        status = opscope__parallel_backward_create(walk);
    }
    for (size_t i = 0; i < count && status == OPSCOPE_OK; i++) {
        opscope_tensor *gradient;
        status = first_gradient(roots[i], gradients != NULL ? gradients[i] : NULL, &gradient);
        if (status == OPSCOPE_OK) {
            status = opscope__deliver(walk, &edges[i], turns[i], gradient);
        }
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    return walk->parallel != NULL ? opscope__parallel_backward_run(walk) : walk_alone(walk);
}

static int find_edges(opscope_tensor *const *tensors, size_t count, const char *what,
                      struct opscope__edge *edges)
{
    for (size_t i = 0; i < count; i++) {
        if (!opscope_tensor_requires_grad(tensors[i])) {
            return opscope_tensor_fail(
                OPSCOPE_ERROR_RUNTIME,
                "backward: %s %zu does not require grad and no operator with "
                "one that does has made it",
                what, i);
        }
        int status = opscope__view_refresh(tensors[i]);
        if (status != OPSCOPE_OK) {
            return status;
        }
        edges[i] = opscope__edge_to(tensors[i]);
    }
    return OPSCOPE_OK;
}

static int check_unused(opscope_tensor *const *captured, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (captured[i] == NULL) {
            return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                       "grad: the roots do not depend on input %zu; pass "
                                       "allow_unused=True to get None for it",
                                       i);
        }
    }
    return OPSCOPE_OK;
}

int opscope_backward(opscope_tensor *const *roots, opscope_tensor *const *gradients, size_t count,
                     bool retain_graph, bool create_graph)
{
    return opscope_grad(roots, gradients, count, NULL, 0, retain_graph, create_graph, true, NULL);
}

int opscope_grad(opscope_tensor *const *roots, opscope_tensor *const *gradients, size_t count,
                 opscope_tensor *const *inputs, size_t input_count, bool retain_graph,
                 bool create_graph, bool allow_unused, opscope_tensor **out)
{
    struct opscope__edge *edges = calloc(count + input_count + 1, sizeof *edges);
    opscope_tensor **captured = calloc(input_count + 1, sizeof *captured);
    uint32_t *turns = calloc(count + 1, sizeof *turns);
    struct opscope__walk walk = {.retain_graph = retain_graph,
                                 .create_graph = create_graph,
                                 .wanted = inputs != NULL && edges != NULL ? edges + count : NULL,
                                 .wanted_count = input_count,
                                 .out = captured};
    int status = edges != NULL && captured != NULL && turns != NULL
                     ? OPSCOPE_OK
                     : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
    if (status == OPSCOPE_OK) {
        status = find_edges(roots, count, "root", edges);
    }
    if (status == OPSCOPE_OK) {
        status = find_edges(inputs, input_count, "input", edges + count);
    }
    if (status == OPSCOPE_OK) {
        bool before = opscope_grad_mode_set(create_graph);
        status = walk_from(&walk, roots, gradients, edges, count, turns);
        opscope_grad_mode_set(before);
        if (walk.parallel != NULL) {
            opscope__parallel_backward_release(walk.parallel);
        }
        opscope__graph_destroy(&walk.graph);
    }
    if (status == OPSCOPE_OK && !allow_unused) {
        status = check_unused(captured, input_count);
    }
    for (size_t i = 0; i < count + input_count && edges != NULL; i++) {
        opscope__edge_release(&edges[i]);
    }
    for (size_t i = 0; i < input_count && captured != NULL; i++) {
        if (status == OPSCOPE_OK) {
            out[i] = captured[i];
        } else {
            opscope_tensor_release(captured[i]);
        }
    }
    free(turns);
    free(edges);
    free(captured);
    return status;
}
