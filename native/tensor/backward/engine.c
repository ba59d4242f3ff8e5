/* tensor/autograd/engine.c -- walking backward: every node once, when all its gradients have
 * arrived.
 *
 * The order is fixed, the newest node first, and so are the sums. Walked alone, on the thread that
 * called backward, debug info and local callbacks are that thread's by themselves; crew.c lets
 * others help.
 */
#include "tensor/autograd/engine.h"

#include <stdlib.h>

#include "tensor/autograd/sum.h"
#include "tensor/autograd/watch.h"
#include "tensor/convert.h"
#include "tensor/shape.h"

int opscope__deliver(struct opscope__walk *walk, const struct opscope__edge *edge, uint32_t turn,
                     opscope_tensor *gradient)
{
    struct opscope__task *task = opscope__graph_find(&walk->graph, edge);
    if (task == NULL) {
        opscope_tensor_release(gradient);
        return OPSCOPE_OK;
    }
    int status = OPSCOPE_OK;
    if (gradient != NULL) {
        const opscope_tensor *of =
            edge->leaf != NULL ? edge->leaf : edge->node->outputs[edge->output];
        status = opscope__gradient_fit(edge->leaf != NULL ? "backward" : edge->node->name, of,
                                       &gradient);
    }
    if (status != OPSCOPE_OK) {
        opscope_tensor_release(gradient);
        return status;
    }
    if (walk->crew != NULL) {
        return opscope__crew_deliver(walk, task, turn, edge->output, gradient);
    }
    if (gradient != NULL) {
        status = opscope__sum_add(&task->arrived[edge->output], gradient);
    }
    if (--task->pending == 0) {
        opscope__graph_push(&walk->graph, task);
    }
    return status;
}

/* Hands what arrived at a wanted input to whoever asked for it. */
static void capture(struct opscope__walk *walk, const struct opscope__task *task)
{
    for (size_t i = 0; i < walk->wanted_count; i++) {
        const struct opscope__edge *edge = &walk->wanted[i];
        if (edge->node == task->node && edge->leaf == task->leaf &&
            task->arrived[edge->output] != NULL) {
            walk->out[i] = opscope_tensor_retain(task->arrived[edge->output]);
        }
    }
}

static bool has_arrived(const struct opscope__task *task)
{
    bool found = false;
    for (size_t i = 0; i < task->output_count; i++) {
        found |= task->arrived[i] != NULL;
    }
    return found;
}

static int run_node(struct opscope__walk *walk, struct opscope__task *task)
{
    opscope_node *node = task->node;
    size_t count = node->input_count;
    opscope_tensor *few[16] = {NULL}, **gradients = few;
    if (count > sizeof few / sizeof *few) {
        gradients = calloc(count, sizeof *gradients);
        if (gradients == NULL) {
            return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
        }
    }
    /* A node whose outputs nobody used has nothing to compute, but others may wait for it. */
    int status = has_arrived(task) ? opscope__evaluate(walk, task, gradients) : OPSCOPE_OK;
    for (size_t i = 0; i < count; i++) {
        if (status == OPSCOPE_OK) {
            status = opscope__deliver(walk, &node->edges[i],
                                      task->turns != NULL ? task->turns[i] : 0, gradients[i]);
        } else {
            opscope_tensor_release(gradients[i]);
        }
    }
    if (gradients != few) {
        free(gradients);
    }
    return status;
}

static int show(struct opscope__task *task)
{
    if (task->leaf != NULL) {
        return opscope__watch_show(task->leaf->grad->watch, &task->arrived[0]);
    }
    int status = OPSCOPE_OK;
    for (size_t i = 0; i < task->output_count && status == OPSCOPE_OK; i++) {
        status = opscope__watch_show(opscope__watch_of(task->node, (uint32_t)i), &task->arrived[i]);
    }
    return status;
}

int opscope__run_task(struct opscope__walk *walk, struct opscope__task *task)
{
    int status = show(task);
    if (status == OPSCOPE_OK && walk->wanted != NULL) {
        capture(walk, task);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (task->node != NULL) {
        status = task->is_idle ? OPSCOPE_OK : run_node(walk, task);
    } else if (walk->wanted == NULL && task->arrived[0] != NULL) {
        status = opscope__accumulate(task->leaf, &task->leaf->grad->grad, task->arrived[0]);
    }
    for (size_t i = 0; i < task->output_count; i++) {
        opscope_tensor_release(task->arrived[i]);
        task->arrived[i] = NULL;
    }
    return status;
}

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
    bool with_crew = status == OPSCOPE_OK && opscope__crew_is_wanted(&walk->graph);
    if (status == OPSCOPE_OK && (with_crew || walk->wanted != NULL)) {
        status = opscope__graph_order(&walk->graph, edges, count, with_crew ? turns : NULL);
    }
    if (status == OPSCOPE_OK && walk->wanted != NULL) {
        opscope__graph_prune(&walk->graph, walk->wanted, walk->wanted_count);
    }
    if (status == OPSCOPE_OK && with_crew) {
        status = opscope__crew_create(walk);
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
    return walk->crew != NULL ? opscope__crew_walk(walk) : walk_alone(walk);
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
        int status = opscope__edge_to(tensors[i], &edges[i]);
        if (status != OPSCOPE_OK) {
            return status;
        }
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
        if (walk.crew != NULL) {
            opscope__crew_release(walk.crew);
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
