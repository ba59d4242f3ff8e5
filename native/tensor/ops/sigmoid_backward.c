/* tensor/ops/sigmoid_backward.c -- core::sigmoid_backward: the gradient through sigmoid. */
#include "tensor/ops/loops.h"

OPSCOPE__BINARY(sigmoid_backward_float32, float, float, a * (b * (1.0f - b)))
OPSCOPE__BINARY(sigmoid_backward_float64, double, double, a * (b * (1.0 - b)))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(sigmoid_backward)}, .cost = 1, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 2, NULL, 0, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(sigmoid_backward) = {
    .schema = "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    .doc = "grad_output * output * (1 - output), the gradient through sigmoid.",
    .samples = "t(3, 4), t(3, 4)",
    .forward = forward,
};
