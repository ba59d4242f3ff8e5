/* tensor/ops/elementwise/asin.c -- core::asin: the arc sine. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(asin, 14)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *square = opscope__f2(&f, "mul", backward->inputs[0], backward->inputs[0]);
    opscope_tensor *left = opscope__f(&f, "sub", opscope__R(1), opscope__T(square));
    opscope_tensor *slope = opscope__f1(&f, "rsqrt", left);
    return opscope__formula_chain(&f, backward, slope, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(asin) = {
    .schema = "asin(Tensor self) -> Tensor",
    .doc = "The angle whose sine is each element, within pi/2 of zero; NaN beyond 1. Integers "
           "and bools are computed in float32. Definition: C asin.",
    .samples = "p(3, 4) * 0.5",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
