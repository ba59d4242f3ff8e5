/* tensor/ops/elementwise/acos.c -- core::acos: the arc cosine. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(acos, 14)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *square = opscope__f2(&f, "mul", backward->inputs[0], backward->inputs[0]);
    opscope_tensor *left = opscope__f(&f, "sub", opscope__R(1), opscope__T(square));
    opscope_tensor *slope = opscope__f1(&f, "rsqrt", left);
    slope = opscope__f1(&f, "neg", slope);
    return opscope__formula_chain(&f, backward, slope, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(acos) = {
    .schema = "acos(Tensor self) -> Tensor",
    .doc = "The angle whose cosine is each element, from 0 to pi; NaN beyond 1. Integers and "
           "bools are computed in float32. Definition: C acos.",
    .samples = "p(3, 4) * 0.5",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
