/* tensor/ops/shape/view.c -- core::view: the same elements in other sizes. */
#include "tensor/ops/shape/reshape.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__resized(call, arguments, false, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(view) = {
    .schema = "view(Tensor self, int[] size) -> Tensor",
    .doc = "The same elements, in row-major order, in other sizes; one size may be -1. Shares "
           "memory; fails if that is not possible.",
    .samples = "t(3, 4), [2, -1]",
    .forward = forward,
    .backward = opscope__resized_backward,
    .is_view = true,
};
