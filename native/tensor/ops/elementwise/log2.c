/* tensor/ops/log2.c -- core::log2: logarithms of base 2. */
#include "tensor/formula.h"
#include "tensor/ops/functions.h"

OPSCOPE__UNARY(log2_float32, float, float, log2f(a))
OPSCOPE__UNARY(log2_float64, double, double, log2(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(log2)}, .cost = 12, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *scaled = opscope__fr(&f, "mul", backward->inputs[0], 0.6931471805599453);
    gradients[0] = opscope__keep(opscope__f2(&f, "div", grad, scaled));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(log2) = {
    .schema = "log2(Tensor self) -> Tensor",
    .doc = "The logarithm of base 2 of each element; NaN below zero. Integers and bools are "
           "computed in float32. Definition: C log2.",
    .samples = "p(3, 4)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
