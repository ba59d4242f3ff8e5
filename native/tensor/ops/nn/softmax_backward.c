/* tensor/ops/nn/softmax_backward.c -- core::softmax_backward: the gradient through softmax. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/nn/softmax.h"

#define LOOP(name, type)                                                                           \
    OPSCOPE__SOFTMAX_BACKWARD(name, type, grads[i] * outputs[i], (grads[i] - sum) * outputs[i])

LOOP(softmax_backward_float32, float)
LOOP(softmax_backward_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const opscope__row_loop loops[OPSCOPE_DTYPE_COUNT] =
        OPSCOPE__FLOAT_ROWS(softmax_backward);
    return opscope__softmax_backward(call, loops, arguments, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *more = backward->gradients[0];
    opscope_tensor *grad = backward->inputs[0], *output = backward->inputs[1];
    const opscope_argument dim = opscope__L(&backward->arguments[2].as.integer, 1);
    gradients[0] = opscope__keep(opscope__f(&f, "softmax_backward", opscope__T(more),
                                            opscope__T(output), backward->arguments[2]));
    if (backward->wanted[1]) {
        opscope_tensor *shares = opscope__f2(&f, "mul", grad, output);
        opscope_tensor *sum = opscope__f(&f, "sum", opscope__T(shares), dim, opscope__B(true));
        opscope_tensor *more_shares = opscope__f2(&f, "mul", more, output);
        opscope_tensor *more_sum =
            opscope__f(&f, "sum", opscope__T(more_shares), dim, opscope__B(true));
        opscope_tensor *left = opscope__f2(&f, "mul", more, opscope__f2(&f, "sub", grad, sum));
        gradients[1] =
            opscope__keep(opscope__f2(&f, "sub", left, opscope__f2(&f, "mul", grad, more_sum)));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(softmax_backward) = {
    .schema = "softmax_backward(Tensor grad_output, Tensor output, int dim) -> Tensor",
    .doc = "(grad_output - sum(grad_output * output)) * output along dim: the gradient through "
           "softmax.",
    .samples = "t(3, 4), t(3, 4), 1",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
};
