/* tensor/ops/nn/gelu_backward.c -- core::gelu_backward: the gradient through gelu. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY(gelu_backward_float32, float, float,
                a * (0.5f * (1.0f + erff(b * 0.70710678f)) + b * 0.39894228f * expf(-0.5f * b * b)))
OPSCOPE__BINARY(gelu_backward_float64, double, double,
                a * (0.5 * (1.0 + erf(b * 0.70710678118654752)) +
                     b * 0.39894228040143268 * exp(-0.5 * b * b)))

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__FLOAT_LOOPS(gelu_backward)}, .cost = 24,
                 .needs_floats = true)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *more = backward->gradients[0];
    opscope_tensor *grad = backward->inputs[0], *self = backward->inputs[1];
    gradients[0] = opscope__keep(opscope__f2(&f, "gelu_backward", more, self));
    if (backward->wanted[1]) {
        /* The normal density times 2 - x^2. */
        opscope_tensor *square = opscope__f2(&f, "mul", self, self);
        opscope_tensor *density = opscope__f1(&f, "exp", opscope__fr(&f, "mul", square, -0.5));
        opscope_tensor *slope = opscope__fr(&f, "add", opscope__fr(&f, "mul", square, -1), 2);
        slope = opscope__fr(&f, "mul", opscope__f2(&f, "mul", slope, density), 0.39894228040143268);
        opscope_tensor *both = opscope__f2(&f, "mul", more, grad);
        gradients[1] = opscope__keep(opscope__f2(&f, "mul", both, slope));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(gelu_backward) = {
    .schema = "gelu_backward(Tensor grad_output, Tensor self) -> Tensor",
    .doc = "grad_output times the slope of gelu at self.",
    .samples = "t(3, 4), t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 3,
};
