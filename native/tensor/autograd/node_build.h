/* tensor/autograd/node_build.h -- creates a node: its memory, its inputs and outputs. */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_NODE_BUILD_H
#define OPSCOPE_TENSOR_AUTOGRAD_NODE_BUILD_H

#include "tensor/autograd/grad.h"

/* The number of each of a node's parts, and `extra` bytes for copies of arguments. */
struct opscope__node_room {
    size_t inputs, saved, outputs, arguments, extra;
};

/* The sequence number of the thread's next recorded call. */
int64_t opscope__tape_next_sequence(void);
/* An empty node; errors name `name`. */
int opscope__node_create(const char *name, const struct opscope__node_room *room,
                         opscope_node **out, char **extra_at);
/* Sets input `index` of the node: its edge, and what backward may read of it. `tensor` may be NULL;
 * its history is up to date (view.h). */
int opscope__node_set_input(opscope_node *node, size_t index, opscope_tensor *tensor,
                            bool with_data);
/* Keeps one more tensor for backward. */
int opscope__node_save(opscope_node *node, opscope_tensor *tensor);
/* Points an output at its node. */
int opscope__node_set_output(opscope_node *node, size_t index, opscope_tensor *tensor);

#endif
