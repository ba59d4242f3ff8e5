/* tensor/ops/min.c -- core::min: the smallest along a dimension, and where. */
#include "tensor/ops/extreme_along.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__extreme_along(call, "argmin", arguments, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(min) = {
    .schema = "min(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc =
        "The smallest element along dim, and its index (int64); of equal ones the first, which has the gradient. "
        "NaN counts as the smallest.",
    .samples = "t(3, 4), 1\n"
               "t(3, 4), 0, True\n"
               "t(), 0",
    .forward = forward,
    .is_composite = true,
};
