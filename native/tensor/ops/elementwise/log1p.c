/* tensor/ops/elementwise/log1p.c -- core::log1p: the logarithm of one plus each element. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(log1p, 14)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *more = opscope__fr(&f, "add", backward->inputs[0], 1.0);
    gradients[0] = opscope__keep(opscope__f2(&f, "div", grad, more));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(log1p) = {
    .schema = "log1p(Tensor self) -> Tensor",
    .doc = "log(1 + x) of each element, exact near zero; NaN below -1. Integers and bools are "
           "computed in float32. Definition: C log1p.",
    .samples = "p(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
