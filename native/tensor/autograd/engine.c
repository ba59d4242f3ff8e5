/* tensor/autograd/engine.c -- walking backward: every node once, when all its gradients have arrived.
 *
 * Serial: on the thread that called backward, so debug info and local callbacks are that thread's by
 * themselves. The order is fixed (newest node first), and so are the sums.
 */
#include <stdlib.h>

#include "tensor/autograd/graph.h"
#include "tensor/convert.h"
#include "tensor/shape.h"

/* One walk. For opscope_grad, `wanted` are the inputs and `out` their gradients. */
struct walk {
    struct opscope__graph graph;
    bool retain_graph;
    const struct opscope__edge *wanted; /* NULL: leaves accumulate */
    size_t wanted_count;
    opscope_tensor **out;
};

/* ---- sums --------------------------------------------------------------------------------------- */

static bool is_sole_owner(const opscope_tensor *tensor)
{
    return __atomic_load_n(&tensor->reference_count, __ATOMIC_RELAXED) == 1 &&
           __atomic_load_n(&tensor->storage->reference_count, __ATOMIC_RELAXED) == 1 &&
           tensor->storage->allocator != NULL && !tensor->is_view && tensor->is_contiguous;
}

/* *sum += more, through the operator, so that it is seen; takes the reference to `more`. */
static int add(opscope_tensor **sum, opscope_tensor *more, bool in_place)
{
    opscope_argument arguments[] = {{OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = *sum}},
                                    {OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = more}}};
    opscope_tensor *result;
    int status = opscope_call(opscope_operator_find(in_place ? "core::add_" : "core::add"), arguments,
                              2, &result);
    opscope_tensor_release(more);
    if (status == OPSCOPE_OK) {
        opscope_tensor_release(*sum);
        *sum = result;
    }
    return status;
}

/* Takes the reference to `gradient`. */
static int arrive(struct opscope__task *task, uint32_t output, opscope_tensor *gradient)
{
    opscope_tensor **sum = &task->arrived[output];
    if (*sum == NULL) {
        *sum = gradient;
        return OPSCOPE_OK;
    }
    return add(sum, gradient, is_sole_owner(*sum));
}

/* ---- leaves --------------------------------------------------------------------------------------- */

static int accumulate(opscope_tensor *leaf, opscope_tensor *gradient)
{
    struct opscope__grad *own = opscope__grad_of(leaf);
    if (own->grad == NULL && is_sole_owner(gradient)) {
        own->grad = opscope_tensor_retain(gradient);
        return OPSCOPE_OK;
    }
    if (own->grad == NULL) {
        return opscope__clone(gradient, &own->grad);
    }
    return add(&own->grad, opscope_tensor_retain(gradient), true);
}

/* Hands what arrived at a wanted input to whoever asked for it. */
static void capture(struct walk *walk, const struct opscope__task *task)
{
    for (size_t i = 0; i < walk->wanted_count; i++) {
        const struct opscope__edge *edge = &walk->wanted[i];
        if (edge->node == task->node && edge->leaf == task->leaf &&
            task->arrived[edge->output] != NULL) {
            walk->out[i] = opscope_tensor_retain(task->arrived[edge->output]);
        }
    }
}

/* ---- nodes ---------------------------------------------------------------------------------------- */

static int check_version(const opscope_node *node, const opscope_tensor *tensor, uint64_t version)
{
    if (tensor == NULL || tensor->storage == NULL || opscope_tensor_version(tensor) == version) {
        return OPSCOPE_OK;
    }
    return opscope_tensor_fail(
        OPSCOPE_ERROR_RUNTIME,
        "%s: a tensor of sizes %s that it saved was changed in place since: it is at version %llu, "
        "expected %llu; clone it before the change",
        node->name, opscope__shape_text(tensor).text,
        (unsigned long long)opscope_tensor_version(tensor), (unsigned long long)version);
}

static int check_node(const opscope_node *node)
{
    if (node->is_spent) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: backward a second time, but what it saved is freed after the "
                                   "first; pass retain_graph=True to the first",
                                   node->name);
    }
    int status = OPSCOPE_OK;
    for (size_t i = 0; i < node->input_count && status == OPSCOPE_OK; i++) {
        status = check_version(node, node->inputs[i], node->versions[i]);
    }
    for (size_t i = 0; i < node->saved_count && status == OPSCOPE_OK; i++) {
        status = check_version(node, node->saved[i].tensor, node->saved[i].version);
    }
    return status;
}

static int call_backward(const opscope_node *node, opscope_tensor *const *gradients,
                         const bool *wanted, opscope_tensor **out)
{
    if (node->op == NULL) {
        return node->custom(node->user, gradients, out);
    }
    opscope_tensor *saved[OPSCOPE__SAVED_LIMIT];
    for (size_t i = 0; i < node->saved_count; i++) {
        saved[i] = node->saved[i].tensor;
    }
    struct opscope__backward backward = {.arguments = node->arguments,
                                         .argument_count = node->op->schema.count,
                                         .inputs = node->inputs,
                                         .input_count = node->input_count,
                                         .saved = saved,
                                         .saved_count = node->saved_count,
                                         .gradients = gradients,
                                         .wanted = wanted};
    return node->op->spec->backward(&backward, out);
}

static size_t box_gradients(void *arg, opscope_value *values, size_t capacity)
{
    const struct opscope__task *task = arg;
    for (size_t i = 0; i < task->node->output_count && i < capacity; i++) {
        values[i] = (opscope_value){OPSCOPE_VALUE_NONE, NULL, {0}};
        if (task->arrived[i] != NULL) {
            values[i] = (opscope_value){OPSCOPE_VALUE_OBJECT, "tensor",
                                        {.object = task->arrived[i]}};
        }
    }
    return task->node->output_count;
}

/* The node's backward, in its range. */
static int run_in_range(struct opscope__task *task, const bool *wanted, opscope_tensor **out)
{
    const opscope_node *node = task->node;
    opscope_range_info info = {node->sequence_nr, node->thread_id, box_gradients, task, false};
    opscope_range range;
    opscope_range_open(&range, node->range, &info);
    int status = check_node(node);
    if (status == OPSCOPE_OK) {
        status = call_backward(node, task->arrived, wanted, out);
    }
    if (status != OPSCOPE_OK) {
        opscope_range_fail(&range);
    }
    opscope_range_close(&range);
    return status;
}

/* A gradient has the sizes and dtype of what it is the gradient of. */
static int check_gradient(const char *name, const opscope_tensor *of, opscope_tensor **gradient)
{
    if (!opscope__same_sizes(of, *gradient)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: a gradient of sizes %s for a tensor of sizes %s; they must be "
                                   "equal",
                                   name, opscope__shape_text(*gradient).text,
                                   opscope__shape_text(of).text);
    }
    if (of->dtype == (*gradient)->dtype) {
        return OPSCOPE_OK;
    }
    opscope_tensor *converted;
    int status = opscope__convert(*gradient, of->dtype, &converted);
    if (status == OPSCOPE_OK) {
        opscope_tensor_release(*gradient);
        *gradient = converted;
    }
    return status;
}

/* Sends one gradient (NULL: none; its reference is taken) along an edge. */
static int deliver(struct walk *walk, const struct opscope__edge *edge, opscope_tensor *gradient)
{
    struct opscope__task *task = opscope__graph_find(&walk->graph, edge);
    if (task == NULL) {
        opscope_tensor_release(gradient);
        return OPSCOPE_OK;
    }
    int status = OPSCOPE_OK;
    if (gradient != NULL) {
        const opscope_tensor *of = edge->leaf != NULL ? edge->leaf : edge->node->outputs[edge->output];
        status = check_gradient(edge->leaf != NULL ? "backward" : edge->node->name, of, &gradient);
        if (status != OPSCOPE_OK) {
            opscope_tensor_release(gradient);
        } else {
            status = arrive(task, edge->output, gradient);
        }
    }
    if (--task->pending == 0) {
        opscope__graph_push(&walk->graph, task);
    }
    return status;
}

static bool has_arrived(const struct opscope__task *task)
{
    for (int i = 0; i < OPSCOPE_OUTPUT_LIMIT; i++) {
        if (task->arrived[i] != NULL) {
            return true;
        }
    }
    return false;
}

static int run_node(struct walk *walk, struct opscope__task *task)
{
    opscope_node *node = task->node;
    size_t count = node->input_count;
    opscope_tensor **gradients = calloc(count + 1, sizeof *gradients);
    bool *wanted = calloc(count + 1, sizeof *wanted);
    int status = gradients != NULL && wanted != NULL
                     ? OPSCOPE_OK
                     : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
    for (size_t i = 0; i < count && status == OPSCOPE_OK; i++) {
        wanted[i] = node->edges[i].node != NULL || node->edges[i].leaf != NULL;
    }
    /* A node whose outputs nobody used has nothing to compute, but others may wait for it. */
    if (status == OPSCOPE_OK && has_arrived(task)) {
        status = run_in_range(task, wanted, gradients);
        if (status == OPSCOPE_OK && !walk->retain_graph) {
            opscope__node_spend(node);
        }
    }
    for (size_t i = 0; i < count && gradients != NULL; i++) {
        if (status == OPSCOPE_OK) {
            status = deliver(walk, &node->edges[i], gradients[i]);
        } else {
            opscope_tensor_release(gradients[i]);
        }
    }
    free(gradients);
    free(wanted);
    return status;
}

static int run_task(struct walk *walk, struct opscope__task *task)
{
    int status = OPSCOPE_OK;
    if (walk->wanted != NULL) {
        capture(walk, task);
    }
    if (task->node != NULL) {
        status = run_node(walk, task);
    } else if (walk->wanted == NULL && task->arrived[0] != NULL) {
        status = accumulate(task->leaf, task->arrived[0]);
    }
    for (int i = 0; i < OPSCOPE_OUTPUT_LIMIT; i++) {
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
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "backward: a gradient is made up only for a tensor of one element, "
                                   "this one has sizes %s; pass gradient=",
                                   opscope__shape_text(root).text);
    }
    int status = opscope__tensor_empty(root->dims, opscope__sizes(root), root->dtype, out);
    if (status == OPSCOPE_OK) {
        opscope__fill(*out, &(opscope_argument){OPSCOPE_ARGUMENT_INT, 0, {.integer = 1}});
    }
    return status;
}

static int start(struct walk *walk, opscope_tensor *const *roots, opscope_tensor *const *gradients,
                 const struct opscope__edge *edges, size_t count)
{
    int status = opscope__graph_build(&walk->graph, edges, count);
    for (size_t i = 0; i < count && status == OPSCOPE_OK; i++) {
        opscope_tensor *gradient;
        status = first_gradient(roots[i], gradients != NULL ? gradients[i] : NULL, &gradient);
        if (status == OPSCOPE_OK) {
            status = deliver(walk, &edges[i], gradient);
        }
    }
    return status;
}

static int find_edges(opscope_tensor *const *tensors, size_t count, const char *what,
                      struct opscope__edge *edges)
{
    for (size_t i = 0; i < count; i++) {
        if (!opscope_tensor_requires_grad(tensors[i])) {
            return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                       "backward: %s %zu does not require grad and no operator with "
                                       "one that does has made it",
                                       what, i);
        }
        int status = opscope__edge_to("backward", tensors[i], &edges[i]);
        if (status != OPSCOPE_OK) {
            return status;
        }
    }
    return OPSCOPE_OK;
}

static int walk_all(struct walk *walk, opscope_tensor *const *roots,
                    opscope_tensor *const *gradients, const struct opscope__edge *edges, size_t count)
{
    bool before = opscope_grad_mode_set(false);
    int status = start(walk, roots, gradients, edges, count);
    struct opscope__task *task;
    while (status == OPSCOPE_OK && (task = opscope__graph_pop(&walk->graph)) != NULL) {
        status = run_task(walk, task);
    }
    opscope_grad_mode_set(before);
    opscope__graph_destroy(&walk->graph);
    return status;
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
    if (create_graph) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "backward: create_graph is not built: gradients of gradients cannot "
                                   "be taken");
    }
    struct opscope__edge *edges = calloc(count + input_count + 1, sizeof *edges);
    opscope_tensor **captured = calloc(input_count + 1, sizeof *captured);
    struct walk walk = {.retain_graph = retain_graph,
                        .wanted = inputs != NULL && edges != NULL ? edges + count : NULL,
                        .wanted_count = input_count,
                        .out = captured};
    int status = edges != NULL && captured != NULL
                     ? OPSCOPE_OK
                     : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
    if (status == OPSCOPE_OK) {
        status = find_edges(roots, count, "root", edges);
    }
    if (status == OPSCOPE_OK) {
        status = find_edges(inputs, input_count, "input", edges + count);
    }
    if (status == OPSCOPE_OK) {
        status = walk_all(&walk, roots, gradients, edges, count);
    }
    for (size_t i = 0; i < input_count && status == OPSCOPE_OK; i++) {
        if (captured[i] == NULL && !allow_unused) {
            status = opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                         "grad: the roots do not depend on input %zu; pass "
                                         "allow_unused=True to get None for it",
                                         i);
        }
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
    free(edges);
    free(captured);
    return status;
}
