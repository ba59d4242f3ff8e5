/* tensor/ops/elementwise/sinh.c -- core::sinh: the hyperbolic sine. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(sinh, 14)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *slope = opscope__f1(&f, "cosh", backward->inputs[0]);
    return opscope__formula_chain(&f, backward, slope, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(sinh) = {
    .schema = "sinh(Tensor self) -> Tensor",
    .doc = "The hyperbolic sine of each element. Integers and bools are computed in float32. "
           "Definition: C sinh.",
    .samples = "t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
