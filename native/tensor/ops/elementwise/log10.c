/* tensor/ops/elementwise/log10.c -- core::log10: the base-10 logarithm. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(log10, 12)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *scaled = opscope__fr(&f, "mul", backward->inputs[0], 2.302585092994046);
    gradients[0] = opscope__keep(opscope__f2(&f, "div", grad, scaled));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(log10) = {
    .schema = "log10(Tensor self) -> Tensor",
    .doc = "The base-10 logarithm of each element; NaN below zero. Integers and bools are "
           "computed in float32. Definition: C log10.",
    .samples = "p(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
