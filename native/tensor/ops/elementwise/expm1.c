/* tensor/ops/elementwise/expm1.c -- core::expm1: the exponential function minus one. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(expm1, 14)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *slope = opscope__fr(&f, "add", backward->saved[0], 1.0);
    return opscope__formula_chain(&f, backward, slope, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(expm1) = {
    .schema = "expm1(Tensor self) -> Tensor",
    .doc = "exp(x) - 1 of each element, exact near zero. Integers and bools are computed in "
           "float32. Definition: C expm1.",
    .samples = "t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
