/* tensor/ops/elementwise/tan.c -- core::tan: the tangent. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(tan, 16)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *square = opscope__f2(&f, "mul", backward->saved[0], backward->saved[0]);
    opscope_tensor *slope = opscope__fr(&f, "add", square, 1.0);
    return opscope__formula_chain(&f, backward, slope, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(tan) = {
    .schema = "tan(Tensor self) -> Tensor",
    .doc = "The tangent of each element, an angle in radians. Integers and bools are computed in "
           "float32. Definition: C tan.",
    .samples = "p(3, 4) * 0.5",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
