/* tensor/ops/reduce/min.c -- core::min: the minimum along a dimension, and its index. */
#include "tensor/ops/reduce/extreme_along.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__extreme_along(call, "argmin", arguments, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(min) = {
    .schema = "min(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc = "The smallest element along dim, and its index (int64). The first of equal elements "
           "is selected and gets the gradient. NaN counts as the smallest.",
    .samples = "t(3, 4), 1\n"
               "t(3, 4), 0, True\n"
               "t(), 0",
    .forward = forward,
    .is_composite = true,
};
