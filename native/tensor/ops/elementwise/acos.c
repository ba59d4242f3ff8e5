/* tensor/ops/acos.c -- core::acos: the arc cosine. */
#include "tensor/formula.h"
#include "tensor/ops/functions.h"

OPSCOPE__UNARY(acos_float32, float, float, acosf(a))
OPSCOPE__UNARY(acos_float64, double, double, acos(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(acos)}, .cost = 14, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *square = opscope__f2(&f, "mul", backward->inputs[0], backward->inputs[0]);
    opscope_tensor *left = opscope__f(&f, "sub", opscope__R(1), opscope__T(square));
    opscope_tensor *slope = opscope__f1(&f, "rsqrt", left);
    slope = opscope__f1(&f, "neg", slope);
    gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, slope));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(acos) = {
    .schema = "acos(Tensor self) -> Tensor",
    .doc = "The angle whose cosine is each element, from 0 to pi; NaN beyond 1. Integers and "
           "bools are computed in float32. Definition: C acos.",
    .samples = "p(3, 4) * 0.5",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
