/* tensor/ops/expm1.c -- core::expm1: e to the power of each element, less one. */
#include "tensor/formula.h"
#include "tensor/ops/functions.h"

OPSCOPE__UNARY(expm1_float32, float, float, expm1f(a))
OPSCOPE__UNARY(expm1_float64, double, double, expm1(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(expm1)}, .cost = 14, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *slope = opscope__fr(&f, "add", backward->saved[0], 1.0);
    gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, slope));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(expm1) = {
    .schema = "expm1(Tensor self) -> Tensor",
    .doc = "exp(x) - 1 of each element, exact near zero. Integers and bools are computed in "
           "float32. Definition: C expm1.",
    .samples = "t(3, 4)",
    .forward = forward,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
