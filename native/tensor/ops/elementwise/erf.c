/* tensor/ops/elementwise/erf.c -- core::erf: the error function. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(erf, 14)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *square = opscope__f2(&f, "mul", backward->inputs[0], backward->inputs[0]);
    opscope_tensor *bell = opscope__f1(&f, "exp", opscope__f1(&f, "neg", square));
    opscope_tensor *slope = opscope__fr(&f, "mul", bell, 1.1283791670955126);
    return opscope__formula_chain(&f, backward, slope, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(erf) = {
    .schema = "erf(Tensor self) -> Tensor",
    .doc = "The error function of each element. Integers and bools are computed in float32. "
           "Definition: C erf.",
    .samples = "t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
