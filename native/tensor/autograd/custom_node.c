/* tensor/autograd/custom_node.c -- custom nodes, whose backward the caller provides. */
#include "tensor/autograd/node_build.h"
#include "tensor/autograd/view.h"

static bool any_requires_grad(opscope_tensor *const *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (tensors[i] != NULL && opscope_tensor_requires_grad(tensors[i])) {
            return true;
        }
    }
    return false;
}

/* An output that shares the memory of an input: only the custom node knows how they are related. */
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
        const struct opscope__node_room room = {.inputs = input_count, .outputs = output_count};
        status = opscope__node_create(name, &room, &node, &extra);
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
        status = inputs[i] != NULL ? opscope__view_refresh(inputs[i]) : OPSCOPE_OK;
        if (status == OPSCOPE_OK) {
            status = opscope__node_set_input(node, i, inputs[i], false);
        }
    }
    for (size_t i = 0; i < output_count && status == OPSCOPE_OK; i++) {
        status = note_views(outputs[i], inputs, input_count);
    }
    for (size_t i = 0; i < output_count && status == OPSCOPE_OK; i++) {
        status = opscope__node_set_output(node, i, outputs[i]);
    }
    opscope_node_release(node);
    return status;
}
