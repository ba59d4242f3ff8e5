/* tensor/ops/reduce/amin.c -- core::amin: the minimum over dimensions. */
#include "tensor/ops/reduce/extremes.h"

OPSCOPE__EXTREMES(amin, <, INFINITY, INT32_MAX, INT64_MAX, UINT8_MAX, 0x7FF0000000000000u)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__extreme_forward(call, amin, "smallest", arguments, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(amin) = {
    .schema = "amin(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    .doc = "The smallest element over the dimensions in dim (all if it is absent or empty), or "
           "NaN if one is NaN. Equal elements share the gradient.",
    .samples = "t(3, 4)\n"
               "t(3, 4), [1], True\n"
               "i(3, 4), [0]",
    .forward = forward,
    .backward = opscope__extreme_backward,
    .saves_inputs = 1,
    .saves_outputs = 1,
};
