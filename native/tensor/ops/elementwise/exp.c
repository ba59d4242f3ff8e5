/* tensor/ops/elementwise/exp.c -- core::exp: the exponential function. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(exp, 10)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    return opscope__formula_chain(&f, backward, backward->saved[0], gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(exp) = {
    .schema = "exp(Tensor self) -> Tensor",
    .doc = "e to the power of each element. Integers and bools are computed in float32. "
           "Definition: C exp.",
    .samples = "t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
