/* tensor/ops/elementwise/sigmoid.c -- core::sigmoid: the logistic function. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__UNARY(sigmoid_float32, float, float, 1.0f / (1.0f + expf(-a)))
OPSCOPE__UNARY(sigmoid_float64, double, double, 1.0 / (1.0 + exp(-a)))

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__FLOAT_LOOPS(sigmoid)}, .cost = 12, .needs_floats = true)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f2(&f, "sigmoid_backward", grad, backward->saved[0]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(sigmoid) = {
    .schema = "sigmoid(Tensor self) -> Tensor",
    .doc = "1 / (1 + exp(-x)) for each element x. Integers and bools are computed in float32.",
    .samples = "t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
