/* tensor/ops/tan.c -- core::tan: the tangent. */
#include "tensor/formula.h"
#include "tensor/ops/functions.h"

OPSCOPE__UNARY(tan_float32, float, float, tanf(a))
OPSCOPE__UNARY(tan_float64, double, double, tan(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(tan)}, .cost = 16, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *square = opscope__f2(&f, "mul", backward->saved[0], backward->saved[0]);
    opscope_tensor *slope = opscope__fr(&f, "add", square, 1.0);
    gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, slope));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(tan) = {
    .schema = "tan(Tensor self) -> Tensor",
    .doc = "The tangent of each element, an angle in radians. Integers and bools are computed in "
           "float32. Definition: C tan.",
    .samples = "p(3, 4) * 0.5",
    .forward = forward,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
