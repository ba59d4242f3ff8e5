/* tensor/ops/shape/reshape.c -- core::reshape: the same elements in other sizes, copied only if
 * necessary. */
#include "tensor/ops/shape/reshape.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__resized(call, arguments, true, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(reshape) = {
    .schema = "reshape(Tensor self, int[] shape) -> Tensor",
    .doc = "The same elements, in row-major order, in other sizes; one size may be -1. A view "
           "if the strides allow it, else a copy.",
    .samples = "t(3, 4), [2, -1]\n"
               "t(3, 4), [12]",
    .forward = forward,
    .backward = opscope__resized_backward,
    .is_view = true,
};
