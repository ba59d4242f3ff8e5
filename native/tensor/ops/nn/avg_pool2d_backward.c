/* tensor/ops/nn/avg_pool2d_backward.c -- core::avg_pool2d_backward: distributes gradients over
 * windows. */
#include "tensor/ops/nn/averages.h"

OPSCOPE__SPREADS(planes_float32, float)
OPSCOPE__SPREADS(planes_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *grad = arguments[0].as.tensor;
    struct opscope__averages a = {.adapts = false};
    int status = opscope__averages_read_sizes(call, arguments, &a);
    if (status == OPSCOPE_OK) {
        status = opscope__averages_slide(&a, arguments + 2);
    }
    return status == OPSCOPE_OK
               ? opscope__averages_backward(&a, planes_float32, planes_float64, grad, outputs)
               : status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_argument *a = backward->arguments;
    gradients[0] = opscope__keep(opscope__f(&f, "avg_pool2d", opscope__T(backward->gradients[0]),
                                            a[2], a[3], a[4], a[5], a[6], a[7]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(avg_pool2d_backward) = {
    .schema =
        "avg_pool2d_backward(Tensor grad_output, int[] input_size, int[2] kernel_size, "
        "int[2]? stride=None, int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, "
        "int? divisor_override=None) -> Tensor",
    .doc = "The gradient of avg_pool2d's input, of sizes input_size, from that of its output.",
    .samples = "t(2, 3, 3, 2), [2, 3, 6, 5], 2\n"
               "t(2, 4, 5), [2, 8, 9], 3, 2, 1, count_include_pad=False",
    .forward = forward,
    .backward = backward,
};
