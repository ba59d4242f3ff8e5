/* tensor/ops/elementwise/tanh_backward.c -- core::tanh_backward: the gradient through tanh. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY(tanh_backward_float32, float, float, a * (1.0f - b * b))
OPSCOPE__BINARY(tanh_backward_float64, double, double, a * (1.0 - b * b))

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__FLOAT_LOOPS(tanh_backward)}, .cost = 1,
                 .needs_floats = true)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *more = backward->gradients[0];
    opscope_tensor *grad = backward->inputs[0], *output = backward->inputs[1];
    gradients[0] = opscope__keep(opscope__f2(&f, "tanh_backward", more, output));
    if (backward->wanted[1]) {
        opscope_tensor *both = opscope__f2(&f, "mul", more, grad);
        gradients[1] =
            opscope__keep(opscope__f2(&f, "mul", both, opscope__fr(&f, "mul", output, -2)));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(tanh_backward) = {
    .schema = "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    .doc = "grad_output * (1 - output ** 2), the gradient through tanh.",
    .samples = "t(3, 4), t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 3,
};
