/* tensor/ops/elementwise/rsqrt.c -- core::rsqrt: one over the square root. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__UNARY(rsqrt_float32, float, float, 1.0f / sqrtf(a))
OPSCOPE__UNARY(rsqrt_float64, double, double, 1.0 / sqrt(a))

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__FLOAT_LOOPS(rsqrt)}, .cost = 3, .needs_floats = true)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *cube = opscope__fr(&f, "pow", backward->saved[0], 3.0);
    opscope_tensor *slope = opscope__fr(&f, "mul", cube, -0.5);
    return opscope__formula_chain(&f, backward, slope, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(rsqrt) = {
    .schema = "rsqrt(Tensor self) -> Tensor",
    .doc = "One over the square root of each element; NaN below zero. Integers and bools are "
           "computed in float32.",
    .samples = "p(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
