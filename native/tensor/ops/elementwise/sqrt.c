/* tensor/ops/elementwise/sqrt.c -- core::sqrt: the square root. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__UNARY(sqrt_float32, float, float, sqrtf(a))
OPSCOPE__UNARY(sqrt_float64, double, double, sqrt(a))

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__FLOAT_LOOPS(sqrt)}, .cost = 2, .needs_floats = true)

static opscope_tensor *divisor(struct opscope__formula *f, opscope_tensor *x)
{
    return opscope__fr(f, "mul", x, 2.0);
}

OPSCOPE__DIVISOR(saved, divisor)

const struct opscope__operator_spec OPSCOPE__OPERATOR(sqrt) = {
    .schema = "sqrt(Tensor self) -> Tensor",
    .doc = "The square root of each element; NaN below zero. Integers and bools are computed in "
           "float32. Definition: C sqrt.",
    .samples = "p(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_outputs = 1,
};
