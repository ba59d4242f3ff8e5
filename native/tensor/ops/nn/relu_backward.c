/* tensor/ops/nn/relu_backward.c -- core::relu_backward: the gradient through relu. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY(relu_backward_float32, float, float, b <= 0.0f ? 0.0f : a)
OPSCOPE__BINARY(relu_backward_float64, double, double, b <= 0.0 ? 0.0 : a)

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__FLOAT_LOOPS(relu_backward)}, .cost = 1,
                 .needs_floats = true)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *more = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f2(&f, "relu_backward", more, backward->inputs[1]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(relu_backward) = {
    .schema = "relu_backward(Tensor grad_output, Tensor output) -> Tensor",
    .doc = "Zero where output is zero or below, else (also for NaN) grad_output: the gradient "
           "through relu.",
    .samples = "t(3, 4), t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 2,
};
