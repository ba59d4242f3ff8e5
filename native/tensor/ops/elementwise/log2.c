/* tensor/ops/elementwise/log2.c -- core::log2: the base-2 logarithm. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(log2, 12)

static opscope_tensor *divisor(struct opscope__formula *f, opscope_tensor *x)
{
    return opscope__fr(f, "mul", x, 0.6931471805599453);
}

OPSCOPE__DIVISOR(inputs, divisor)

const struct opscope__operator_spec OPSCOPE__OPERATOR(log2) = {
    .schema = "log2(Tensor self) -> Tensor",
    .doc = "The base-2 logarithm of each element; NaN below zero. Integers and bools are "
           "computed in float32. Definition: C log2.",
    .samples = "p(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_inputs = 1,
};
