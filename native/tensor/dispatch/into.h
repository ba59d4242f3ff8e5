/* tensor/dispatch/into.h -- calls that write their results into given tensors ("out="). */
#ifndef OPSCOPE_TENSOR_DISPATCH_INTO_H
#define OPSCOPE_TENSOR_DISPATCH_INTO_H

#include "tensor/core/call.h"

/* Runs a call whose results go into call->targets. */
int opscope__call_into_targets(struct opscope__call *call, const opscope_argument *arguments,
                               opscope_tensor **outputs);

#endif
