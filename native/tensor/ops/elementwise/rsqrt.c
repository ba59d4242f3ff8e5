/* tensor/ops/elementwise/rsqrt.c -- core::rsqrt: one over the square root. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__UNARY(rsqrt_float32, float, float, 1.0f / sqrtf(a))
OPSCOPE__UNARY(rsqrt_float64, double, double, 1.0 / sqrt(a))

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__FLOAT_LOOPS(rsqrt)}, .cost = 3, .needs_floats = true)

static opscope_tensor *slope(struct opscope__formula *f, opscope_tensor *x)
{
    return opscope__fr(f, "mul", opscope__fr(f, "pow", x, 3.0), -0.5);
}

OPSCOPE__SLOPE(saved, slope)

const struct opscope__operator_spec OPSCOPE__OPERATOR(rsqrt) = {
    .schema = "rsqrt(Tensor self) -> Tensor",
    .doc = "One over the square root of each element; NaN below zero. Integers and bools are "
           "computed in float32.",
    .samples = "p(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_outputs = 1,
};
