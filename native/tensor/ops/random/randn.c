/* tensor/ops/random/randn.c -- core::randn: random numbers from the standard normal
 * distribution. */
#include "tensor/ops/random/random_fill.h"

static double draw(opscope__stretch *stretch, opscope_dtype dtype)
{
    (void)dtype;
    return opscope__draw_normal(stretch);
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__random_fill(call, arguments, draw, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(randn) = {
    .schema = "randn(int[] size, *, dtype? dtype=None) -> Tensor",
    .doc = "Numbers drawn from the normal distribution of mean 0 and variance 1 (Box and Muller "
           "1958). float32 unless dtype is float64. Repeatable after opscope_tensor_seed.",
    .samples = "[3, 4]",
    .forward = forward,
};
