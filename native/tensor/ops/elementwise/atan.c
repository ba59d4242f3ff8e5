/* tensor/ops/atan.c -- core::atan: the arc tangent. */
#include "tensor/formula.h"
#include "tensor/ops/functions.h"

OPSCOPE__UNARY(atan_float32, float, float, atanf(a))
OPSCOPE__UNARY(atan_float64, double, double, atan(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(atan)}, .cost = 14, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *square = opscope__f2(&f, "mul", backward->inputs[0], backward->inputs[0]);
    opscope_tensor *below = opscope__fr(&f, "add", square, 1.0);
    gradients[0] = opscope__keep(opscope__f2(&f, "div", grad, below));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(atan) = {
    .schema = "atan(Tensor self) -> Tensor",
    .doc = "The angle whose tangent is each element, within pi/2 of zero. Integers and bools are "
           "computed in float32. Definition: C atan.",
    .samples = "t(3, 4)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
