/* tensor/ops/rand_like.c -- core::rand_like: numbers in the sizes of another tensor. */
#include "tensor/ops/filled.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    return opscope__made_like("rand", arguments, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(rand_like) = {
    .schema = "rand_like(Tensor self, *, dtype? dtype=None) -> Tensor",
    .doc =
        "A new contiguous tensor of self's sizes and, unless another is given, its dtype: numbers drawn evenly from [0, 1).",
    .samples = "t(3, 4)\n"
               "t(2), dtype=float64",
    .forward = forward,
    .is_composite = true,
};
