/* tensor/ops/log10.c -- core::log10: logarithms of base 10. */
#include "tensor/formula.h"
#include "tensor/ops/functions.h"

OPSCOPE__UNARY(log10_float32, float, float, log10f(a))
OPSCOPE__UNARY(log10_float64, double, double, log10(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(log10)}, .cost = 12, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

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
    .doc = "The logarithm of base 10 of each element; NaN below zero. Integers and bools are "
           "computed in float32. Definition: C log10.",
    .samples = "p(3, 4)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
