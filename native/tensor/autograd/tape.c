/* tensor/autograd/tape.c -- recording: a call becomes a node, its outputs point at it. */
#include "tensor/autograd/tape.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local int64_t sequence_count;

int64_t opscope__tape_next_sequence(void)
{
    return sequence_count++;
}

static int no_memory(const char *name)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: out of memory for its backward", name);
}

/* ---- edges ----------------------------------------------------------------------------------- */

int opscope__edge_to(const char *name, opscope_tensor *tensor, struct opscope__edge *out)
{
    const struct opscope__grad *grad = tensor != NULL ? tensor->grad : NULL;
    struct opscope__edge edge = {NULL, NULL, 0};
    if (grad == NULL || !grad->requires_grad) {
        *out = edge;
        return OPSCOPE_OK;
    }
    if (grad->node == NULL) {
        edge.leaf = opscope_tensor_retain(tensor);
    } else if (grad->version != opscope_tensor_version(tensor)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: a tensor made by %s was changed in place through another view of its memory (now at "
            "version %llu, expected %llu): its gradient is not known; clone it before the change",
            name, grad->node->name, (unsigned long long)opscope_tensor_version(tensor),
            (unsigned long long)grad->version);
    } else {
        edge.node = opscope_node_retain(grad->node);
        edge.output = grad->output;
    }
    *out = edge;
    return OPSCOPE_OK;
}

/* ---- in-place -------------------------------------------------------------------------------- */

int opscope__tape_check_inplace(const char *name, const opscope_tensor *target)
{
    if (opscope_tensor_requires_grad(target) && opscope_tensor_is_leaf(target)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: a leaf that requires grad is written in place; do it under "
                                   "no_grad, or on a clone",
                                   name);
    }
    if (target->is_view) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: a view is written in place where a gradient is wanted; clone "
                                   "the view first",
                                   name);
    }
    return OPSCOPE_OK;
}

void opscope__tape_move(opscope_tensor *from, opscope_tensor *to)
{
    to->grad = from->grad;
    from->grad = NULL;
    opscope__tape_written(to);
}

void opscope__tape_written(opscope_tensor *tensor)
{
    if (tensor->grad != NULL) {
        tensor->grad->version = opscope_tensor_version(tensor);
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* A node with room for `inputs` inputs and, behind them, `extra` bytes for copies of arguments. */
static opscope_node *create(size_t input_count, size_t extra, char **extra_at)
{
    size_t edges = input_count * sizeof(struct opscope__edge);
    size_t tensors = input_count * sizeof(opscope_tensor *);
    size_t versions = input_count * sizeof(uint64_t);
    opscope_node *node = calloc(1, sizeof *node + edges + tensors + versions + extra);
    if (node == NULL) {
        return NULL;
    }
    char *at = (char *)node->edges + edges;
    node->inputs = (opscope_tensor **)(void *)at;
    node->versions = (uint64_t *)(void *)(at + tensors);
    *extra_at = at + tensors + versions;
    node->reference_count = 1;
    node->input_count = input_count;
    node->thread_id = opscope_thread_id();
    return node;
}

static size_t extra_bytes(const opscope_operator *op, const opscope_argument *arguments)
{
    size_t bytes = 0;
    for (size_t i = 0; i < op->schema.count; i++) {
        if (arguments[i].kind == OPSCOPE_ARGUMENT_INTS) {
            bytes += arguments[i].count * sizeof(int64_t);
        } else if (arguments[i].kind == OPSCOPE_ARGUMENT_TEXT) {
            bytes += (strlen(arguments[i].as.text) + 8) & ~(size_t)7;
        }
    }
    return bytes;
}

/* The arguments but for their tensors, which point into node->inputs. */
static void copy_arguments(opscope_node *node, const opscope_argument *arguments, char *extra)
{
    size_t input = 0;
    for (size_t i = 0; i < node->op->schema.count; i++) {
        opscope_argument *into = &node->arguments[i];
        enum opscope__type type = node->op->schema.parameters[i].type;
        *into = arguments[i];
        if (type == OPSCOPE__TYPE_TENSOR) {
            if (into->kind == OPSCOPE_ARGUMENT_TENSOR) {
                into->as.tensor = node->inputs[input];
            }
            input++;
        } else if (into->kind == OPSCOPE_ARGUMENT_TENSORS) {
            into->as.tensors = &node->inputs[input];
            input += into->count;
        } else if (into->kind == OPSCOPE_ARGUMENT_INTS) {
            size_t bytes = into->count * sizeof(int64_t);
            if (bytes != 0) {
                memcpy(extra, arguments[i].as.integers, bytes);
            }
            into->as.integers = (const int64_t *)(const void *)extra;
            extra += bytes;
        } else if (into->kind == OPSCOPE_ARGUMENT_TEXT) {
            size_t bytes = strlen(arguments[i].as.text) + 1;
            into->as.text = memcpy(extra, arguments[i].as.text, bytes);
            extra += (bytes + 7) & ~(size_t)7;
        }
    }
}

/* Input `index` of the node: its edge, and what backward will see of it. */
static int set_input(opscope_node *node, size_t index, opscope_tensor *tensor, bool with_data)
{
    int status = opscope__edge_to(node->name, tensor, &node->edges[index]);
    if (status != OPSCOPE_OK || tensor == NULL) {
        return status;
    }
    if (!with_data) {
        return opscope__tensor_outline(tensor, &node->inputs[index]);
    }
    node->versions[index] = opscope_tensor_version(tensor);
    return opscope__tensor_alias(tensor, &node->inputs[index]);
}

static int save(opscope_node *node, opscope_tensor *tensor)
{
    struct opscope__kept *kept = &node->saved[node->saved_count++];
    kept->version = opscope_tensor_version(tensor);
    return opscope__tensor_alias(tensor, &kept->tensor);
}

/* Points an output at its node. */
static int set_output(opscope_node *node, size_t index, opscope_tensor *tensor)
{
    int status = opscope__tensor_outline(tensor, &node->outputs[index]);
    if (status != OPSCOPE_OK || !opscope_dtype_is_floating(tensor->dtype)) {
        return status;
    }
    struct opscope__grad *grad = opscope__grad_of(tensor);
    if (grad == NULL) {
        return no_memory(node->name);
    }
    if (grad->node != NULL) {
        opscope_node_release(grad->node);
    }
    grad->node = opscope_node_retain(node);
    grad->output = (uint32_t)index;
    grad->requires_grad = true;
    grad->version = opscope_tensor_version(tensor);
    return OPSCOPE_OK;
}

static size_t count_inputs(const opscope_operator *op, const opscope_argument *arguments)
{
    size_t count = 0, at = 0, within = 0;
    opscope_tensor *tensor;
    while (opscope__next_input(op, arguments, &at, &within, &tensor)) {
        count++;
    }
    return count;
}

int opscope__tape_record(struct opscope__call *call, opscope_tensor *const *outputs)
{
    const opscope_operator *op = call->op;
    const struct opscope__operator_spec *spec = op->spec;
    char *extra;
    opscope_node *node = create(count_inputs(op, call->arguments),
                                extra_bytes(op, call->arguments), &extra);
    if (node == NULL) {
        return no_memory(op->name);
    }
    node->op = op;
    node->range = op->backward_range;
    node->name = node->range->name;
    node->sequence_nr = call->info.sequence_nr;
    node->output_count = op->schema.output_count;

    int status = OPSCOPE_OK;
    size_t index = 0, at = 0, within = 0;
    opscope_tensor *tensor;
    while (status == OPSCOPE_OK &&
           opscope__next_input(op, call->arguments, &at, &within, &tensor)) {
        /* A list counts as one in the mask, by its first. */
        bool with_data = index < 32 && (spec->saves_inputs >> index & 1) != 0;
        status = set_input(node, index++, tensor, with_data);
    }
    copy_arguments(node, call->arguments, extra);
    for (size_t i = 0; i < node->output_count && status == OPSCOPE_OK; i++) {
        if ((spec->saves_outputs >> i & 1) != 0) {
            status = save(node, outputs[i]);
        }
    }
    for (size_t i = 0; i < call->saved_count && status == OPSCOPE_OK; i++) {
        status = save(node, call->saved[i]);
    }
    for (size_t i = 0; i < node->output_count && status == OPSCOPE_OK; i++) {
        status = set_output(node, i, outputs[i]);
    }
    opscope_node_release(node);
    return status;
}

/* ---- custom nodes ---------------------------------------------------------------------------- */

static bool any_requires_grad(opscope_tensor *const *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (tensors[i] != NULL && opscope_tensor_requires_grad(tensors[i])) {
            return true;
        }
    }
    return false;
}

int opscope_autograd_record(const char *name, opscope_tensor *const *inputs, size_t input_count,
                            opscope_tensor *const *outputs, size_t output_count,
                            int (*backward)(void *user, opscope_tensor *const *gradients,
                                            opscope_tensor **out),
                            void (*release)(void *user), void *user)
{
    int status = OPSCOPE_OK;
    opscope_node *node = NULL;
    const opscope_op *range;
    if (output_count > OPSCOPE_OUTPUT_LIMIT) {
        status = opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: at most %d outputs, not %zu", name,
                                     OPSCOPE_OUTPUT_LIMIT, output_count);
    } else if (opscope_grad_mode() && any_requires_grad(inputs, input_count)) {
        char *extra;
        node = create(input_count, 0, &extra);
        status = node != NULL ? OPSCOPE_OK : no_memory(name);
    }
    if (node == NULL) {
        if (release != NULL) {
            release(user);
        }
        return status;
    }
    if (opscope_op_intern(name, "", OPSCOPE_BACKWARD_FUNCTION, OPSCOPE_BACKWARD, &range) !=
        OPSCOPE_OK) {
        range = opscope_op_other();
    }
    node->range = range;
    node->name = range->name;
    node->sequence_nr = opscope__tape_next_sequence();
    node->custom = backward;
    node->release = release;
    node->user = user;
    node->output_count = output_count;
    for (size_t i = 0; i < input_count && status == OPSCOPE_OK; i++) {
        status = set_input(node, i, inputs[i], false);
    }
    for (size_t i = 0; i < output_count && status == OPSCOPE_OK; i++) {
        status = set_output(node, i, outputs[i]);
    }
    opscope_node_release(node);
    return status;
}
