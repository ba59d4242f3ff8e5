/* tensor/ops/create/ones_like.c -- core::ones_like: ones in the sizes of another tensor. */
#include "tensor/ops/create/new_tensor.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    return opscope__made_like("ones", arguments, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(ones_like) = {
    .schema = "ones_like(Tensor self, *, dtype? dtype=None) -> Tensor",
    .doc = "A new contiguous tensor of self's sizes, 1 everywhere; self's dtype unless dtype is "
           "given.",
    .samples = "t(3, 4)\n"
               "t(2), dtype=float64",
    .forward = forward,
    .is_composite = true,
};
