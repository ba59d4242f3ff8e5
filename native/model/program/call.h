/* model/program/call.h -- a call of an operator with values. */
#ifndef OPSCOPE_MODEL_PROGRAM_CALL_H
#define OPSCOPE_MODEL_PROGRAM_CALL_H

#include "model/program/code.h"

/* `inputs` are the plan's given arguments, in order; `outputs` has room for OPSCOPE_OUTPUT_LIMIT
 * tensors, or for one list. `spare` is a tensor among the inputs that may become the result, or
 * NULL. */
int opscope__call_with(const struct opscope__call_plan *plan, struct opscope__heap *heap,
                       const struct opscope__value *const *inputs, opscope_tensor *spare,
                       struct opscope__value *outputs);

#endif
