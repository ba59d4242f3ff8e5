/* tensor/ops/elementwise/sigmoid_backward.c -- core::sigmoid_backward: the gradient through
 * sigmoid. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY(sigmoid_backward_float32, float, float, a *(b * (1.0f - b)))
OPSCOPE__BINARY(sigmoid_backward_float64, double, double, a *(b * (1.0 - b)))

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__FLOAT_LOOPS(sigmoid_backward)}, .cost = 1,
                 .needs_floats = true)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *more = backward->gradients[0];
    opscope_tensor *grad = backward->inputs[0], *output = backward->inputs[1];
    gradients[0] = opscope__keep(opscope__f2(&f, "sigmoid_backward", more, output));
    if (backward->wanted[1]) {
        opscope_tensor *slope = opscope__fr(&f, "add", opscope__fr(&f, "mul", output, -2), 1);
        opscope_tensor *both = opscope__f2(&f, "mul", more, grad);
        gradients[1] = opscope__keep(opscope__f2(&f, "mul", both, slope));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(sigmoid_backward) = {
    .schema = "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    .doc = "grad_output * output * (1 - output), the gradient through sigmoid.",
    .samples = "t(3, 4), t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 3,
};
