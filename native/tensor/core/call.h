/* tensor/core/call.h -- a running call of an operator. */
#ifndef OPSCOPE_TENSOR_CORE_CALL_H
#define OPSCOPE_TENSOR_CORE_CALL_H

#include "tensor/core/registry.h"

enum {
    OPSCOPE__SAVED_LIMIT = 8,
    OPSCOPE__SAVED_BY_FORWARD = OPSCOPE__SAVED_LIMIT - OPSCOPE_OUTPUT_LIMIT
};

struct opscope__call {
    const opscope_operator *op;
    const opscope_argument *arguments; /* all of them, with defaults */
    opscope_tensor *into;              /* the target of an in-place call without grad */
    bool wants_grad;
    const opscope_storage *written; /* of an in-place call with grad: the storage it wrote */
    size_t held_count;
    opscope_tensor *held[OPSCOPE_ARGUMENT_LIMIT]; /* owned; the arguments before the call */
    opscope_tensor_list *list;                    /* for an operator "-> Tensor[]": its outputs */
    opscope_tensor **targets; /* the caller's tensors for the results ("out="); else NULL */
    size_t saved_count;
    opscope_tensor *saved[OPSCOPE__SAVED_BY_FORWARD]; /* owned */
    opscope_range_info info;
};

#endif
