/* tensor/ops/nn/relu.c -- core::relu: the rectifier. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__UNARY(relu_float32, float, float, a < 0 ? 0 : a)
OPSCOPE__UNARY(relu_float64, double, double, a < 0 ? 0 : a)
OPSCOPE__UNARY(relu_int32, int32_t, int32_t, a < 0 ? 0 : a)
OPSCOPE__UNARY(relu_int64, int64_t, int64_t, a < 0 ? 0 : a)
OPSCOPE__UNARY(relu_uint8, uint8_t, uint8_t, a)

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__NUMBER_LOOPS(relu)}, .cost = 1)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f2(&f, "relu_backward", grad, backward->saved[0]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(relu) = {
    .schema = "relu(Tensor self) -> Tensor",
    .doc = "The larger of each element and zero; NaN stays. Not for bool.",
    .samples = "t(3, 4)\n"
               "i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
