/* tensor/ops/exp2.c -- core::exp2: powers of two. */
#include "tensor/formula.h"
#include "tensor/ops/functions.h"

OPSCOPE__UNARY(exp2_float32, float, float, exp2f(a))
OPSCOPE__UNARY(exp2_float64, double, double, exp2(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(exp2)}, .cost = 10, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *slope = opscope__fr(&f, "mul", backward->saved[0], 0.6931471805599453);
    gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, slope));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(exp2) = {
    .schema = "exp2(Tensor self) -> Tensor",
    .doc = "2 to the power of each element. Integers and bools are computed in float32. "
           "Definition: C exp2.",
    .samples = "t(3, 4)",
    .forward = forward,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
