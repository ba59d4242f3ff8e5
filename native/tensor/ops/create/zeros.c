/* tensor/ops/create/zeros.c -- core::zeros: 0 everywhere. */
#include "tensor/ops/create/new_tensor.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__filled(call, &arguments[0], &arguments[1], OPSCOPE_FLOAT32, &opscope__I(0),
                           outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(zeros) = {
    .schema = "zeros(int[] size, *, dtype? dtype=None) -> Tensor",
    .doc = "A new tensor of those sizes, 0 everywhere; float32 unless dtype is given.",
    .samples = "[3, 4]",
    .forward = forward,
};
