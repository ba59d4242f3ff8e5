/* tensor/ops/tanh_backward.c -- core::tanh_backward: the gradient through tanh. */
#include "tensor/ops/loops.h"

OPSCOPE__BINARY(tanh_backward_float32, float, float, a * (1.0f - b * b))
OPSCOPE__BINARY(tanh_backward_float64, double, double, a * (1.0 - b * b))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(tanh_backward)}, .cost = 1, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 2, NULL, 0, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(tanh_backward) = {
    .schema = "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    .doc = "grad_output * (1 - output ** 2), the gradient through tanh.",
    .samples = "t(3, 4), t(3, 4)",
    .forward = forward,
};
