/* tensor/ops/create/ones.c -- core::ones: 1 everywhere. */
#include "tensor/ops/create/new_tensor.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__filled(call, &arguments[0], &arguments[1], OPSCOPE_FLOAT32, &opscope__I(1),
                           outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(ones) = {
    .schema = "ones(int[] size, *, dtype? dtype=None) -> Tensor",
    .doc = "A new tensor of those sizes, 1 everywhere; float32 unless dtype is given.",
    .samples = "[3, 4]",
    .forward = forward,
};
