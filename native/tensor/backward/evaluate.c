/* tensor/backward/evaluate.c -- one node's backward: what it saved is checked, its range opened,
 * its formula run.
 *
 * A formula reads aliases of what the forward read, which are off the tape. Where the gradients are
 * to be on the tape themselves (create_graph), it reads tensors that stand where the forward's
 * stood, and as formulas are written with operators, the gradient's own history comes of itself.
 */
#include "tensor/backward/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/autograd/grad.h"
#include "tensor/core/registry.h"
#include "tensor/core/shape.h"
#include "tensor/memory/block.h"

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

static int check_versions(const opscope_node *node)
{
    int status = OPSCOPE_OK;
    for (size_t i = 0; i < node->input_count + node->saved_count && status == OPSCOPE_OK; i++) {
        status = check_version(node, node->inputs[i], node->versions[i]);
    }
    return status;
}

static int call_formula(const opscope_node *node, const opscope_argument *arguments,
                        opscope_tensor *const *inputs, opscope_tensor *const *gradients,
                        const bool *wanted, opscope_tensor **out)
{
    const struct opscope__backward backward = {.arguments = arguments,
                                               .argument_count = node->argument_count,
                                               .inputs = inputs,
                                               .input_count = node->input_count,
                                               .saved = inputs + node->input_count,
                                               .saved_count = node->saved_count,
                                               .gradients = gradients,
                                               .wanted = wanted};
    return node->op->spec->backward(&backward, out);
}

/* ---- on the tape ------------------------------------------------------------------------------- */

/* An alias of a saved tensor, standing where the edge leads. */
static int stand_at(const struct opscope__edge *edge, opscope_tensor *saved, opscope_tensor **out)
{
    if (saved == NULL || saved->storage == NULL || (edge->node == NULL && edge->leaf == NULL)) {
        *out = saved != NULL ? opscope_tensor_retain(saved) : NULL;
        return OPSCOPE_OK;
    }
    if (edge->leaf != NULL) {
        *out = opscope_tensor_retain(edge->leaf);
        return OPSCOPE_OK;
    }
    int status = opscope__tensor_alias(saved, out);
    if (status != OPSCOPE_OK) {
        return status;
    }
    struct opscope__grad *grad = opscope__grad_of(*out);
    if (grad == NULL) {
        opscope_tensor_release(*out);
        *out = NULL;
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
    }
    grad->requires_grad = true;
    grad->node = opscope_node_retain(edge->node);
    grad->output = edge->output;
    return OPSCOPE_OK;
}

/* Where saved tensor `index` stands: outputs that the operator saves come first, in their order. */
static struct opscope__edge edge_of_saved(opscope_node *node, size_t index)
{
    struct opscope__edge edge = {NULL, NULL, 0};
    for (uint32_t output = 0; output < node->output_count; output++) {
        if ((node->op->spec->saves_outputs >> output & 1) != 0 && index-- == 0) {
            if (opscope_dtype_is_floating((opscope_dtype)node->outputs[output]->dtype)) {
                edge.node = node;
                edge.output = output;
            }
            return edge;
        }
    }
    return edge;
}

/* The arguments with their tensors taken from `inputs` in place of the node's. */
static void move_arguments(const opscope_node *node, opscope_tensor *const *inputs,
                           opscope_argument *out)
{
    for (size_t i = 0; i < node->argument_count; i++) {
        opscope_argument *argument = &out[i];
        *argument = node->arguments[i];
        if (argument->kind == OPSCOPE_ARGUMENT_TENSORS) {
            argument->as.tensors = inputs + (argument->as.tensors - node->inputs);
        }
        for (size_t j = 0; argument->kind == OPSCOPE_ARGUMENT_TENSOR && j < node->input_count;
             j++) {
            if (node->inputs[j] == argument->as.tensor) {
                argument->as.tensor = inputs[j];
                break;
            }
        }
    }
}

static int call_on_tape(opscope_node *node, opscope_tensor *const *gradients, const bool *wanted,
                        opscope_tensor **out)
{
    size_t count = node->input_count + node->saved_count;
    opscope_tensor **inputs = calloc(count + 1, sizeof *inputs);
    opscope_argument arguments[OPSCOPE_ARGUMENT_LIMIT];
    int status = inputs != NULL
                     ? OPSCOPE_OK
                     : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
    for (size_t i = 0; i < count && status == OPSCOPE_OK; i++) {
        struct opscope__edge edge =
            i < node->input_count ? node->edges[i] : edge_of_saved(node, i - node->input_count);
        status = stand_at(&edge, node->inputs[i], &inputs[i]);
    }
    if (status == OPSCOPE_OK) {
        move_arguments(node, inputs, arguments);
        status = call_formula(node, arguments, inputs, gradients, wanted, out);
    }
    for (size_t i = 0; i < count && inputs != NULL; i++) {
        opscope_tensor_release(inputs[i]);
    }
    free(inputs);
    return status;
}

/* ---- custom nodes -------------------------------------------------------------------------------- */

static _Thread_local opscope_node *running_custom;

static int run_custom(opscope_node *node, opscope_tensor *const *gradients, opscope_tensor **out)
{
    opscope_node *before = running_custom;
    running_custom = node;
    int status = node->custom(node->user, gradients, out);
    running_custom = before;
    return status;
}

int opscope__as_output(opscope_tensor *saved, uint32_t index, opscope_tensor **out)
{
    bool is_known =
        running_custom != NULL && opscope_grad_mode() && index < running_custom->output_count;
    const struct opscope__edge edge = {is_known ? running_custom : NULL, NULL, index};
    return stand_at(&edge, saved, out);
}

/* ---- the node ------------------------------------------------------------------------------------ */

static size_t box_gradients(void *arg, opscope_value *values, size_t capacity)
{
    const struct opscope__task *task = arg;
    for (size_t i = 0; i < task->output_count && i < capacity; i++) {
        values[i] = (opscope_value){.kind = OPSCOPE_VALUE_NONE};
        if (task->arrived[i] != NULL) {
            values[i] = (opscope_value){
                .kind = OPSCOPE_VALUE_OBJECT, .type = "tensor", .as.object = task->arrived[i]};
        }
    }
    return task->output_count;
}

static int run_entered(const struct opscope__walk *walk, struct opscope__task *task,
                       const bool *wanted, opscope_tensor **out)
{
    opscope_node *node = task->node;
    int status = check_versions(node);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (node->op == NULL) {
        return run_custom(node, task->arrived, out);
    }
    if (node->op->spec->backward == NULL) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: the gradient of %s is not defined: gradients of gradients cannot be "
            "taken through it; compute it from other operators, or in a Function",
            node->name, node->op->name);
    }
    return walk->create_graph
               ? call_on_tape(node, task->arrived, wanted, out)
               : call_formula(node, node->arguments, node->inputs, task->arrived, wanted, out);
}

int opscope__evaluate(const struct opscope__walk *walk, struct opscope__task *task,
                      opscope_tensor **gradients)
{
    opscope_node *node = task->node;
    bool few[16], *wanted = few;
    if (node->input_count > sizeof few / sizeof *few) {
        wanted = malloc(node->input_count * sizeof *wanted);
        if (wanted == NULL) {
            return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
        }
    }
    for (size_t i = 0; i < node->input_count; i++) {
        wanted[i] = node->edges[i].node != NULL || node->edges[i].leaf != NULL;
    }
    opscope_range_info info = {node->sequence_nr, node->thread_id, box_gradients, task, false};
    opscope_range range;
    /* A window may open in the midst of the node, whose own range it then has not seen. */
    const uint64_t phase_bits = opscope__hot.phase_bits;
    opscope__hot.phase_bits = OPSCOPE__PHASE_BITS(OPSCOPE_BACKWARD);
    opscope_range_open(&range, node->range, &info);
    int status;
    if (opscope__node_enter(node, !walk->retain_graph)) {
        status = run_entered(walk, task, wanted, gradients);
        opscope__node_leave(node);
    } else {
        status =
            opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                "%s: backward a second time, but what it saved is freed after the "
                                "first; pass retain_graph=True to the first",
                                node->name);
    }
    if (status != OPSCOPE_OK) {
        opscope_range_fail(&range);
    }
    opscope_range_close(&range);
    opscope__hot.phase_bits = phase_bits;
    if (wanted != few) {
        free(wanted);
    }
    return status;
}
