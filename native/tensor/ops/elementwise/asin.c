/* tensor/ops/asin.c -- core::asin: the arc sine. */
#include "tensor/formula.h"
#include "tensor/ops/functions.h"

OPSCOPE__UNARY(asin_float32, float, float, asinf(a))
OPSCOPE__UNARY(asin_float64, double, double, asin(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(asin)}, .cost = 14, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *square = opscope__f2(&f, "mul", backward->inputs[0], backward->inputs[0]);
    opscope_tensor *left = opscope__f(&f, "sub", opscope__R(1), opscope__T(square));
    opscope_tensor *slope = opscope__f1(&f, "rsqrt", left);
    gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, slope));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(asin) = {
    .schema = "asin(Tensor self) -> Tensor",
    .doc = "The angle whose sine is each element, within pi/2 of zero; NaN beyond 1. Integers "
           "and bools are computed in float32. Definition: C asin.",
    .samples = "p(3, 4) * 0.5",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
