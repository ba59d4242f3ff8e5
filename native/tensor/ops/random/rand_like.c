/* tensor/ops/random/rand_like.c -- core::rand_like: uniform random numbers in the sizes of another
 * tensor. */
#include "tensor/ops/create/new_tensor.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    return opscope__made_like("rand", arguments, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(rand_like) = {
    .schema = "rand_like(Tensor self, *, dtype? dtype=None) -> Tensor",
    .doc = "A new contiguous tensor of self's sizes with numbers drawn uniformly from [0, 1); "
           "self's dtype unless dtype is given.",
    .samples = "t(3, 4)\n"
               "t(2), dtype=float64",
    .forward = forward,
    .is_composite = true,
};
