/* tensor/ops/elementwise/log.c -- core::log: the natural logarithm. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(log, 10)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f2(&f, "div", grad, backward->inputs[0]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(log) = {
    .schema = "log(Tensor self) -> Tensor",
    .doc = "The natural logarithm of each element; NaN below zero. Integers and bools are "
           "computed in float32. Definition: C log.",
    .samples = "p(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
