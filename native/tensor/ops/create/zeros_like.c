/* tensor/ops/create/zeros_like.c -- core::zeros_like: zeros in the sizes of another tensor. */
#include "tensor/ops/create/new_tensor.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    return opscope__made_like("zeros", arguments, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(zeros_like) = {
    .schema = "zeros_like(Tensor self, *, dtype? dtype=None) -> Tensor",
    .doc = "A new contiguous tensor of self's sizes, 0 everywhere; self's dtype unless dtype is "
           "given.",
    .samples = "t(3, 4)\n"
               "t(2), dtype=float64",
    .forward = forward,
    .is_composite = true,
};
