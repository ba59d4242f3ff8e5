/* tensor/ops/log1p.c -- core::log1p: the logarithm of one more. */
#include "tensor/formula.h"
#include "tensor/ops/functions.h"

OPSCOPE__UNARY(log1p_float32, float, float, log1pf(a))
OPSCOPE__UNARY(log1p_float64, double, double, log1p(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(log1p)}, .cost = 14, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

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
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
