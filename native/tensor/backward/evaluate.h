/* tensor/backward/evaluate.h -- one node's backward. */
#ifndef OPSCOPE_TENSOR_BACKWARD_EVALUATE_H
#define OPSCOPE_TENSOR_BACKWARD_EVALUATE_H

#include "tensor/backward/walk.h"

/* The node's backward, in its range: a gradient, or NULL, for each of its inputs. */
int opscope__evaluate(const struct opscope__walk *walk, struct opscope__task *task,
                      opscope_tensor **gradients);

/* An alias of `saved`, which is output `index` of the custom node whose backward this thread runs
 * now; on the tape where grad mode is on. */
OPSCOPE_API int opscope__as_output(opscope_tensor *saved, uint32_t index, opscope_tensor **out);

#endif
