/* tensor/ops/elementwise/exp2.c -- core::exp2: powers of two. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(exp2, 10)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *slope = opscope__fr(&f, "mul", backward->saved[0], 0.6931471805599453);
    return opscope__formula_chain(&f, backward, slope, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(exp2) = {
    .schema = "exp2(Tensor self) -> Tensor",
    .doc = "2 to the power of each element. Integers and bools are computed in float32. "
           "Definition: C exp2.",
    .samples = "t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
