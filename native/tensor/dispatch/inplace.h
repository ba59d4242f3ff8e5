/* tensor/dispatch/inplace.h -- calls that write their first argument. */
#ifndef OPSCOPE_TENSOR_DISPATCH_INPLACE_H
#define OPSCOPE_TENSOR_DISPATCH_INPLACE_H

#include "tensor/core/call.h"

/* Writes the call's result into the first argument, which must be a tensor. */
int opscope__call_inplace(struct opscope__call *call, opscope_argument *arguments,
                          opscope_tensor **outputs);
/* Whether the operator's result can be written into the target. */
int opscope__check_result(const char *name, const opscope_tensor *target,
                          const opscope_tensor *result);

#endif
