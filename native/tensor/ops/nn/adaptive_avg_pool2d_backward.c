/* tensor/ops/nn/adaptive_avg_pool2d_backward.c -- core::adaptive_avg_pool2d_backward: distributes
 * gradients over windows. */
#include "tensor/ops/nn/averages.h"

OPSCOPE__SPREADS(planes_float32, float)
OPSCOPE__SPREADS(planes_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *grad = arguments[0].as.tensor;
    struct opscope__averages a = {.adapts = false};
    int status = opscope__averages_read_sizes(call, arguments, &a);
    if (status == OPSCOPE_OK && grad->dims == a.pooling.dims) {
        a.pooling.out_size[0] = opscope__sizes(grad)[grad->dims - 2];
        a.pooling.out_size[1] = opscope__sizes(grad)[grad->dims - 1];
    }
    if (status == OPSCOPE_OK) {
        status = opscope__averages_adapt(&a);
    }
    return status == OPSCOPE_OK
               ? opscope__averages_backward(&a, planes_float32, planes_float64, grad, outputs)
               : status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *grad = backward->inputs[0];
    const opscope_argument size = opscope__L(opscope__sizes(grad) + grad->dims - 2, 2);
    gradients[0] = opscope__keep(
        opscope__f(&f, "adaptive_avg_pool2d", opscope__T(backward->gradients[0]), size));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(adaptive_avg_pool2d_backward) = {
    .schema = "adaptive_avg_pool2d_backward(Tensor grad_output, int[] input_size) -> Tensor",
    .doc = "The gradient of adaptive_avg_pool2d's input, of sizes input_size, from that of its "
           "output.",
    .samples = "t(2, 3, 2, 3), [2, 3, 6, 5]\n"
               "t(2, 2, 2), [2, 7, 8]",
    .forward = forward,
    .backward = backward,
};
