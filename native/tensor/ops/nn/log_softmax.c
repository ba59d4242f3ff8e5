/* tensor/ops/nn/log_softmax.c -- core::log_softmax: the logarithm of softmax. */
#include "tensor/ops/nn/softmax.h"

OPSCOPE__SOFTMAX(log_softmax_float32, float, opscope__exp_normal, -OPSCOPE__EXP_NORMAL, logf,
                 x - top - log_sum)
OPSCOPE__SOFTMAX(log_softmax_float64, double, exp, -708.0, log, x - top - log_sum)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const opscope__row_loop loops[OPSCOPE_DTYPE_COUNT] = OPSCOPE__FLOAT_ROWS(log_softmax);
    return opscope__softmax_forward(call, loops, arguments, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    return opscope__softmax_gradient(backward, "log_softmax_backward", gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(log_softmax) = {
    .schema = "log_softmax(Tensor self, int dim) -> Tensor",
    .doc = "The logarithm of softmax along dim, for floats, without the loss of precision of "
           "two steps.",
    .samples = "t(3, 4), 1\n"
               "t(3, 4), 0",
    .forward = forward,
    .backward = backward,
    .saves_outputs = 1,
};
