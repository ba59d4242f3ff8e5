/* tensor/autograd/node_build.c -- creates a node: its memory, its inputs and outputs. */
#include "tensor/autograd/node_build.h"

#include <string.h>

#include "base/atomics.h"
#include "tensor/memory/block.h"

static _Thread_local int64_t sequence_count;

int64_t opscope__tape_next_sequence(void)
{
    return sequence_count++;
}

static int no_memory(const char *name)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: out of memory for its backward", name);
}

int opscope__node_create(const char *name, const struct opscope__node_room *room,
                         opscope_node **out, char **extra_at)
{
    size_t kept = room->inputs + room->saved;
    size_t edges = room->inputs * sizeof(struct opscope__edge);
    size_t arguments = room->arguments * sizeof(opscope_argument);
    size_t bytes = sizeof(opscope_node) + edges + arguments + kept * sizeof(uint64_t) +
                   (kept + room->outputs) * sizeof(opscope_tensor *) + room->extra;
    opscope_node *node = opscope__block_take(bytes);
    if (node == NULL) {
        return no_memory(name);
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
    *out = node;
    return OPSCOPE_OK;
}

static void weigh(opscope_node *node, const opscope_tensor *tensor)
{
    node->work = tensor->count > node->work ? tensor->count : node->work;
}

int opscope__node_set_input(opscope_node *node, size_t index, opscope_tensor *tensor,
                            bool with_data)
{
    node->edges[index] = opscope__edge_to(tensor);
    if (tensor == NULL) {
        return OPSCOPE_OK;
    }
    weigh(node, tensor);
    if (!with_data) {
        return opscope__tensor_outline(tensor, &node->inputs[index]);
    }
    node->versions[index] = opscope_tensor_version(tensor);
    return opscope__tensor_alias(tensor, &node->inputs[index]);
}

int opscope__node_save(opscope_node *node, opscope_tensor *tensor)
{
    size_t at = node->input_count + node->saved_count++;
    node->versions[at] = opscope_tensor_version(tensor);
    return opscope__tensor_alias(tensor, &node->inputs[at]);
}

int opscope__node_set_output(opscope_node *node, size_t index, opscope_tensor *tensor)
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
    /* Partner: the load in opscope__view_refresh, which runs only for views. */
    opscope__store_release(&grad->version, opscope_tensor_version(tensor));
    if (before != NULL) {
        opscope_node_release(before);
    }
    return OPSCOPE_OK;
}
