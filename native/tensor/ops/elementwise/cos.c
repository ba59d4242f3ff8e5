/* tensor/ops/elementwise/cos.c -- core::cos: the cosine. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(cos, 16)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *slope = opscope__f1(&f, "sin", backward->inputs[0]);
    slope = opscope__f1(&f, "neg", slope);
    return opscope__formula_chain(&f, backward, slope, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(cos) = {
    .schema = "cos(Tensor self) -> Tensor",
    .doc = "The cosine of each element, in radians. Integers and bools are computed in float32. "
           "Definition: C cos.",
    .samples = "t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
