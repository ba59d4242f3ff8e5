/* tensor/ops/elementwise/sin.c -- core::sin: the sine. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(sin, 16)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *slope = opscope__f1(&f, "cos", backward->inputs[0]);
    return opscope__formula_chain(&f, backward, slope, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(sin) = {
    .schema = "sin(Tensor self) -> Tensor",
    .doc = "The sine of each element, in radians. Integers and bools are computed in float32. "
           "Definition: C sin.",
    .samples = "t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
