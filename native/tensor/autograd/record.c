/* tensor/autograd/record.c -- records a call of an operator as a node that its outputs point to. */
#include "tensor/autograd/record.h"

#include <string.h>

#include "tensor/autograd/node_build.h"

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

/* The arguments, except that their tensors point into node->inputs. */
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

static size_t count_inputs(const opscope_operator *op, const opscope_argument *arguments)
{
    size_t count = 0, at = 0, within = 0;
    opscope_tensor *tensor;
    while (opscope__next_input(op, arguments, &at, &within, &tensor)) {
        count++;
    }
    return count;
}

/* Whether backward reads the data of that input. The mask has one bit for a whole list. */
static bool is_saved(const struct opscope__step *step, size_t index)
{
    const struct opscope__operator_spec *spec = step->op->spec;
    if (index >= 32 || (spec->saves_inputs >> index & 1) == 0) {
        return false;
    }
    if (index >= sizeof spec->saves_for || spec->saves_for[index] == 0) {
        return true;
    }
    size_t at = 0, within = 0;
    opscope_tensor *tensor;
    for (size_t i = 0; opscope__next_input(step->op, step->arguments, &at, &within, &tensor); i++) {
        if (i < 8 && (spec->saves_for[index] >> i & 1) != 0 && tensor != NULL &&
            opscope__needs_gradient(tensor)) {
            return true;
        }
    }
    return false;
}

int opscope__record(const struct opscope__step *step, opscope_tensor *const *outputs)
{
    const opscope_operator *op = step->op;
    const struct opscope__operator_spec *spec = op->spec;
    char *extra;
    const struct opscope__node_room room = {
        count_inputs(op, step->arguments),
        (size_t)__builtin_popcount(spec->saves_outputs) + step->saved_count,
        op->schema.output_count, op->schema.count, extra_bytes(op, step->arguments)};
    opscope_node *node;
    int status = opscope__node_create(op->name, &room, &node, &extra);
    if (status != OPSCOPE_OK) {
        return status;
    }
    node->op = op;
    node->range = op->node_range;
    node->name = node->range->name;
    node->sequence_nr = step->sequence_nr;

    size_t index = 0, at = 0, within = 0;
    opscope_tensor *tensor;
    while (status == OPSCOPE_OK &&
           opscope__next_input(op, step->arguments, &at, &within, &tensor)) {
        bool with_data = is_saved(step, index);
        status = opscope__node_set_input(node, index, tensor, with_data);
        if (with_data && tensor != NULL && tensor->storage == step->written) {
            node->versions[index]--; /* the write has destroyed the saved value */
        }
        index++;
    }
    copy_arguments(node, step->arguments, extra);
    for (size_t i = 0; i < node->output_count && status == OPSCOPE_OK; i++) {
        if ((spec->saves_outputs >> i & 1) != 0) {
            status = opscope__node_save(node, outputs[i]);
        }
    }
    for (size_t i = 0; i < step->saved_count && status == OPSCOPE_OK; i++) {
        status = opscope__node_save(node, step->saved[i]);
    }
    for (size_t i = 0; i < node->output_count && status == OPSCOPE_OK; i++) {
        status = opscope__node_set_output(node, i, outputs[i]);
    }
    opscope_node_release(node);
    return status;
}

int opscope__record_operator(const char *name, const opscope_argument *arguments,
                             opscope_tensor *output)
{
    const struct opscope__step step = {.op = opscope_operator_find(name),
                                       .arguments = arguments,
                                       .sequence_nr = opscope__tape_next_sequence()};
    return opscope__record(&step, &output);
}
