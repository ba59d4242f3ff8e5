/* tensor/backward/deliver.h -- sending gradients along edges. */
#ifndef OPSCOPE_TENSOR_BACKWARD_DELIVER_H
#define OPSCOPE_TENSOR_BACKWARD_DELIVER_H

#include "tensor/backward/walk.h"

/* Sends one gradient (NULL: none; its reference is taken) along an edge. */
int opscope__deliver(struct opscope__walk *walk, const struct opscope__edge *edge, uint32_t turn,
                     opscope_tensor *gradient);

#endif
