/* tensor/ops/nn/softmax.c -- core::softmax: exponentials normalized to a sum of one. */
#include "tensor/ops/nn/softmax.h"

OPSCOPE__SOFTMAX(softmax_float32, float, opscope__exp_normal, -OPSCOPE__EXP_NORMAL, logf, y *factor)
OPSCOPE__SOFTMAX(softmax_float64, double, exp, -708.0, log, y *factor)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const opscope__row_loop loops[OPSCOPE_DTYPE_COUNT] = OPSCOPE__FLOAT_ROWS(softmax);
    return opscope__softmax_forward(call, loops, arguments, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    return opscope__softmax_gradient(backward, "softmax_backward", gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(softmax) = {
    .schema = "softmax(Tensor self, int dim) -> Tensor",
    .doc = "exp(x) divided by the sum of exp(x) along dim, for floats.",
    .samples = "t(3, 4), 1\n"
               "t(3, 4), 0",
    .forward = forward,
    .backward = backward,
    .saves_outputs = 1,
};
