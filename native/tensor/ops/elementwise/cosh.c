/* tensor/ops/elementwise/cosh.c -- core::cosh: the hyperbolic cosine. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(cosh, 14)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *slope = opscope__f1(&f, "sinh", backward->inputs[0]);
    return opscope__formula_chain(&f, backward, slope, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(cosh) = {
    .schema = "cosh(Tensor self) -> Tensor",
    .doc = "The hyperbolic cosine of each element. Integers and bools are computed in float32. "
           "Definition: C cosh.",
    .samples = "t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
