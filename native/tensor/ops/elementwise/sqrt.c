/* tensor/ops/elementwise/sqrt.c -- core::sqrt: the square root. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__UNARY(sqrt_float32, float, float, sqrtf(a))
OPSCOPE__UNARY(sqrt_float64, double, double, sqrt(a))

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__FLOAT_LOOPS(sqrt)}, .cost = 2, .needs_floats = true)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *twice = opscope__fr(&f, "mul", backward->saved[0], 2.0);
    gradients[0] = opscope__keep(opscope__f2(&f, "div", grad, twice));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(sqrt) = {
    .schema = "sqrt(Tensor self) -> Tensor",
    .doc = "The square root of each element; NaN below zero. Integers and bools are computed in "
           "float32. Definition: C sqrt.",
    .samples = "p(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
