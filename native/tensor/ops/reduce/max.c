/* tensor/ops/max.c -- core::max: the largest along a dimension, and where. */
#include "tensor/ops/extreme_along.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__extreme_along(call, "argmax", arguments, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(max) = {
    .schema = "max(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc =
        "The largest element along dim, and its index (int64); of equal ones the first, which has the gradient. "
        "NaN counts as the largest.",
    .samples = "t(3, 4), 1\n"
               "t(3, 4), 0, True\n"
               "t(), 0",
    .forward = forward,
    .is_composite = true,
};
