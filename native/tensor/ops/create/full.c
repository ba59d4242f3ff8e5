/* tensor/ops/create/full.c -- core::full: one number everywhere. */
#include "tensor/ops/create/new_tensor.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_dtype own = arguments[1].kind == OPSCOPE_ARGUMENT_FLOAT  ? OPSCOPE_FLOAT32
                        : arguments[1].kind == OPSCOPE_ARGUMENT_BOOL ? OPSCOPE_BOOL
                                                                     : OPSCOPE_INT64;
    return opscope__filled(call, &arguments[0], &arguments[2], own, &arguments[1], outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(full) = {
    .schema = "full(int[] size, Scalar fill_value, *, dtype? dtype=None) -> Tensor",
    .doc = "A new tensor of those sizes with one number everywhere; its dtype is that of the "
           "number (int64, float32, bool) unless dtype is given.",
    .samples = "[3, 4], 2.5",
    .forward = forward,
};
