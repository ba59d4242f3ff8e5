/* tensor/ops/elementwise/reciprocal.c -- core::reciprocal: one over each element. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__UNARY(reciprocal_float32, float, float, 1 / a)
OPSCOPE__UNARY(reciprocal_float64, double, double, 1 / a)

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__FLOAT_LOOPS(reciprocal)}, .cost = 2, .needs_floats = true)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *square = opscope__f2(&f, "mul", backward->saved[0], backward->saved[0]);
    opscope_tensor *slope = opscope__f1(&f, "neg", square);
    return opscope__formula_chain(&f, backward, slope, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(reciprocal) = {
    .schema = "reciprocal(Tensor self) -> Tensor",
    .doc = "1 / x of each element. Integers and bools are computed in float32.",
    .samples = "p(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
