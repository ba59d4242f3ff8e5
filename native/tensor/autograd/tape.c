/* tensor/autograd/tape.c -- recording: a call becomes a node, its outputs point at it. */
#include <string.h>

#include "tensor/autograd/watch.h"
#include "tensor/block.h"

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

int opscope__edge_to(opscope_tensor *tensor, struct opscope__edge *out)
{
    struct opscope__edge edge = {NULL, NULL, 0};
    if (tensor == NULL || tensor->grad == NULL) {
        *out = edge;
        return OPSCOPE_OK;
    }
    int status = opscope__view_refresh(tensor);
    if (status != OPSCOPE_OK) {
        return status;
    }
    const struct opscope__grad *grad = tensor->grad;
    if (grad->requires_grad && grad->node == NULL) {
        edge.leaf = opscope_tensor_retain(tensor);
    } else if (grad->requires_grad) {
        edge.node = opscope_node_retain(grad->node);
        edge.output = grad->output;
    }
    *out = edge;
    return OPSCOPE_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* How many of each a node has, and `extra` bytes for copies of arguments. */
struct room {
    size_t inputs, saved, outputs, arguments, extra;
};

static opscope_node *create(const struct room *room, char **extra_at)
{
    size_t kept = room->inputs + room->saved;
    size_t edges = room->inputs * sizeof(struct opscope__edge);
    size_t arguments = room->arguments * sizeof(opscope_argument);
    size_t bytes = sizeof(opscope_node) + edges + arguments + kept * sizeof(uint64_t) +
                   (kept + room->outputs) * sizeof(opscope_tensor *) + room->extra;
    opscope_node *node = opscope__block_take(bytes);
    if (node == NULL) {
        return NULL;
    }
    memset(node, 0, bytes);
    char *at = (char *)node->edges + edges;
    node->arguments = (opscope_argument *)(void *)at;
    at += arguments;
    node->versions = (uint64_t *)(void *)at;
    at += kept * sizeof(uint64_t);
    node->inputs = (opscope_tensor **)(void *)at;
    node->outputs = node->inputs + kept;
    *extra_at = (char *)(node->outputs + room->outputs);
    node->bytes = bytes;
    node->reference_count = 1;
    node->input_count = room->inputs;
    node->output_count = room->outputs;
    node->argument_count = room->arguments;
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

static void weigh(opscope_node *node, const opscope_tensor *tensor)
{
    node->work = tensor->count > node->work ? tensor->count : node->work;
}

/* Input `index` of the node: its edge, and what backward will see of it. */
static int set_input(opscope_node *node, size_t index, opscope_tensor *tensor, bool with_data)
{
    int status = opscope__edge_to(tensor, &node->edges[index]);
    if (status != OPSCOPE_OK || tensor == NULL) {
        return status;
    }
    weigh(node, tensor);
    if (!with_data) {
        return opscope__tensor_outline(tensor, &node->inputs[index]);
    }
    node->versions[index] = opscope_tensor_version(tensor);
    return opscope__tensor_alias(tensor, &node->inputs[index]);
}

static int save(opscope_node *node, opscope_tensor *tensor)
{
    size_t at = node->input_count + node->saved_count++;
    node->versions[at] = opscope_tensor_version(tensor);
    return opscope__tensor_alias(tensor, &node->inputs[at]);
}

/* Points an output at its node. */
static int set_output(opscope_node *node, size_t index, opscope_tensor *tensor)
{
    int status = opscope__tensor_outline(tensor, &node->outputs[index]);
    if (status != OPSCOPE_OK || !opscope_dtype_is_floating((opscope_dtype)tensor->dtype)) {
        return status;
    }
    weigh(node, tensor);
    struct opscope__grad *grad = opscope__grad_of(tensor);
    if (grad == NULL) {
        return no_memory(node->name);
    }
    opscope_node *before = grad->node;
    grad->node = opscope_node_retain(node);
    grad->output = (uint32_t)index;
    grad->requires_grad = true;
    if (grad->watch != NULL) {
        opscope__watch_renew(grad);
    }
    /* Partner: the load in opscope__view_refresh; only views are asked. */
    __atomic_store_n(&grad->version, opscope_tensor_version(tensor), __ATOMIC_RELEASE);
    if (before != NULL) {
        opscope_node_release(before);
    }
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

/* Whether backward will read the data of that input. A list counts as one in the mask, by its
 * first. */
static bool is_saved(const struct opscope__call *call, size_t index)
{
    const struct opscope__operator_spec *spec = call->op->spec;
    if (index >= 32 || (spec->saves_inputs >> index & 1) == 0) {
        return false;
    }
    if (index >= sizeof spec->saves_for || spec->saves_for[index] == 0) {
        return true;
    }
    size_t at = 0, within = 0;
    opscope_tensor *tensor;
    for (size_t i = 0; opscope__next_input(call->op, call->arguments, &at, &within, &tensor); i++) {
        if (i < 8 && (spec->saves_for[index] >> i & 1) != 0 && tensor != NULL &&
            opscope_tensor_requires_grad(tensor)) {
            return true;
        }
    }
    return false;
}

int opscope__tape_record(struct opscope__call *call, opscope_tensor *const *outputs)
{
    const opscope_operator *op = call->op;
    const struct opscope__operator_spec *spec = op->spec;
    char *extra;
    const struct room room = {count_inputs(op, call->arguments),
                              (size_t)__builtin_popcount(spec->saves_outputs) + call->saved_count,
                              op->schema.output_count, op->schema.count,
                              extra_bytes(op, call->arguments)};
    opscope_node *node = create(&room, &extra);
    if (node == NULL) {
        return no_memory(op->name);
    }
    node->op = op;
    node->range = op->node_range;
    node->name = node->range->name;
    node->sequence_nr = call->info.sequence_nr;

    int status = OPSCOPE_OK;
    size_t index = 0, at = 0, within = 0;
    opscope_tensor *tensor;
    while (status == OPSCOPE_OK &&
           opscope__next_input(op, call->arguments, &at, &within, &tensor)) {
        bool with_data = is_saved(call, index);
        status = set_input(node, index, tensor, with_data);
        if (with_data && tensor != NULL && tensor->storage == call->written) {
            node->versions[index]--; /* it was read before the write, and is not there any more */
        }
        index++;
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

/* An output in the memory of an input: nobody but the node knows how the two belong together. */
static int note_views(opscope_tensor *output, opscope_tensor *const *inputs, size_t input_count)
{
    for (size_t i = 0; i < input_count; i++) {
        if (inputs[i] != NULL && inputs[i]->storage == output->storage) {
            return opscope__view_note(inputs[i], output, OPSCOPE__VIEW_CUSTOM);
        }
    }
    return OPSCOPE_OK;
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
    if (opscope_grad_mode() && any_requires_grad(inputs, input_count)) {
        char *extra;
        node = create(&(struct room){.inputs = input_count, .outputs = output_count}, &extra);
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
    for (size_t i = 0; i < input_count && status == OPSCOPE_OK; i++) {
        status = set_input(node, i, inputs[i], false);
    }
    for (size_t i = 0; i < output_count && status == OPSCOPE_OK; i++) {
        status = note_views(outputs[i], inputs, input_count);
    }
    for (size_t i = 0; i < output_count && status == OPSCOPE_OK; i++) {
        status = set_output(node, i, outputs[i]);
    }
    opscope_node_release(node);
    return status;
}
