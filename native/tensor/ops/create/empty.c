/* tensor/ops/create/empty.c -- core::empty: a tensor with uninitialised memory. */
#include "tensor/ops/create/new_tensor.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__unfilled(call, &arguments[0], &arguments[1], OPSCOPE_FLOAT32, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(empty) = {
    .schema = "empty(int[] size, *, dtype? dtype=None) -> Tensor",
    .doc = "A new tensor of those sizes with uninitialised elements; float32 unless dtype is "
           "given.",
    .samples = "[3, 4]",
    .forward = forward,
};
