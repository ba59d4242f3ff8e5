/* tensor/ops/create/empty_like.c -- core::empty_like: uninitialised memory in the sizes of another
 * tensor. */
#include "tensor/ops/create/new_tensor.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    return opscope__made_like("empty", arguments, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(empty_like) = {
    .schema = "empty_like(Tensor self, *, dtype? dtype=None) -> Tensor",
    .doc = "A new contiguous tensor of self's sizes with uninitialised elements; self's dtype "
           "unless dtype is given.",
    .samples = "t(3, 4)\n"
               "t(2), dtype=float64",
    .forward = forward,
    .is_composite = true,
};
