/* tensor/ops/random/rand.c -- core::rand: uniformly distributed random numbers. */
#include "tensor/ops/random/random_fill.h"

/* Rounding to float32 must not give 1. */
static double draw(opscope__stretch *stretch, opscope_dtype dtype)
{
    const double value = opscope__draw_unit(stretch), last = 0x1.fffffep-1;
    return dtype == OPSCOPE_FLOAT32 && value > last ? last : value;
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__random_fill(call, arguments, draw, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(rand) = {
    .schema = "rand(int[] size, *, dtype? dtype=None) -> Tensor",
    .doc = "Numbers drawn uniformly from [0, 1). float32 unless dtype says float64. Repeatable "
           "after opscope_tensor_seed.",
    .samples = "[3, 4]",
    .forward = forward,
};
