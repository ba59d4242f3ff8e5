/* tensor/ops/gelu_backward.c -- core::gelu_backward: the gradient through gelu. */
#include "tensor/ops/loops.h"

OPSCOPE__BINARY(gelu_backward_float32, float, float, a * (0.5f * (1.0f + erff(b * 0.70710678f)) + b * 0.39894228f * expf(-0.5f * b * b)))
OPSCOPE__BINARY(gelu_backward_float64, double, double, a * (0.5 * (1.0 + erf(b * 0.70710678118654752)) + b * 0.39894228040143268 * exp(-0.5 * b * b)))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(gelu_backward)}, .cost = 24, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 2, NULL, 0, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(gelu_backward) = {
    .schema = "gelu_backward(Tensor grad_output, Tensor self) -> Tensor",
    .doc = "grad_output times the slope of gelu at self.",
    .samples = "t(3, 4), t(3, 4)",
    .forward = forward,
};
