/* tensor/ops/nn/log_softmax_backward.c -- core::log_softmax_backward: the gradient through
 * log_softmax. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/nn/softmax.h"

#define LOOP(name, type, EXP)                                                                      \
    OPSCOPE__SOFTMAX_BACKWARD(name, type, grads[i], grads[i] - EXP(outputs[i]) * sum)

LOOP(log_softmax_backward_float32, float, expf)
LOOP(log_softmax_backward_float64, double, exp)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const opscope__row_loop loops[OPSCOPE_DTYPE_COUNT] =
        OPSCOPE__FLOAT_ROWS(log_softmax_backward);
    return opscope__softmax_backward(call, loops, arguments, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *more = backward->gradients[0];
    opscope_tensor *grad = backward->inputs[0];
    const opscope_argument dim = opscope__L(&backward->arguments[2].as.integer, 1);
    opscope_tensor *share =
        opscope__f2(&f, "mul", more, opscope__f1(&f, "exp", backward->inputs[1]));
    opscope_tensor *sum = opscope__f(&f, "sum", opscope__T(share), dim, opscope__B(true));
    gradients[0] = opscope__keep(opscope__f2(&f, "sub", more, sum));
    if (backward->wanted[1]) {
        opscope_tensor *whole = opscope__f(&f, "sum", opscope__T(grad), dim, opscope__B(true));
        gradients[1] = opscope__keep(opscope__f1(&f, "neg", opscope__f2(&f, "mul", share, whole)));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(log_softmax_backward) = {
    .schema = "log_softmax_backward(Tensor grad_output, Tensor output, int dim) -> Tensor",
    .doc = "grad_output - exp(output) * sum(grad_output) along dim: the gradient through "
           "log_softmax.",
    .samples = "t(3, 4), t(3, 4), 1",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
};
