/* torch/values.h -- inputs and outputs of PyTorch's ranges, for callbacks and traces that need
 * them. */
#ifndef OPSCOPE_BRIDGES_TORCH_VALUES_H
#define OPSCOPE_BRIDGES_TORCH_VALUES_H

#include "bridges/torch/symbols.h"

/* One opscope_box each, for a PyTorch range. */
size_t opscope__torch_box_inputs(void *fn, opscope_value *values, size_t capacity);
size_t opscope__torch_box_outputs(void *fn, opscope_value *values, size_t capacity);
/* For the trial: checks the kinds of values with the arguments of torch.empty(0, pin_memory=False),
 * an operator that opscope__torch_operator_fault found sound. */
void opscope__torch_try_values(const struct opscope__torch_function *fn);
/* After the trial: NULL, or the reason why some kinds stay opaque. */
const char *opscope__torch_values_fault(void);

#endif
