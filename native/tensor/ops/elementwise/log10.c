/* tensor/ops/elementwise/log10.c -- core::log10: the base-10 logarithm. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(log10, 12)

static opscope_tensor *divisor(struct opscope__formula *f, opscope_tensor *x)
{
    return opscope__fr(f, "mul", x, 2.302585092994046);
}

OPSCOPE__DIVISOR(inputs, divisor)

const struct opscope__operator_spec OPSCOPE__OPERATOR(log10) = {
    .schema = "log10(Tensor self) -> Tensor",
    .doc = "The base-10 logarithm of each element; NaN below zero. Integers and bools are "
           "computed in float32. Definition: C log10.",
    .samples = "p(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_inputs = 1,
};
