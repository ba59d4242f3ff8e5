/* tensor/ops/nn/avg_pool2d.c -- core::avg_pool2d: the mean of each window. */
#include "tensor/ops/nn/averages.h"

OPSCOPE__AVERAGES(planes_float32, float)
OPSCOPE__AVERAGES(planes_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *input = arguments[0].as.tensor;
    struct opscope__averages a = {.adapts = false};
    int status = opscope__pooling_read(opscope__call_name(call), input->dims, opscope__sizes(input),
                                       (opscope_dtype)input->dtype, &a.pooling);
    if (status == OPSCOPE_OK) {
        status = opscope__averages_slide(&a, arguments + 1);
    }
    return status == OPSCOPE_OK
               ? opscope__averages_forward(&a, planes_float32, planes_float64, input, outputs)
               : status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_argument *a = backward->arguments;
    const opscope_tensor *input = backward->inputs[0];
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f(&f, "avg_pool2d_backward", opscope__T(grad),
                                            opscope__L(opscope__sizes(input), input->dims), a[1],
                                            a[2], a[3], a[4], a[5], a[6]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(avg_pool2d) = {
    .schema =
        "avg_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, "
        "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    .doc = "The mean of each window of kernel_size that moves by stride (default kernel_size) "
           "over each image of floats [batch, channels, height, width] or [channels, height, "
           "width]. Padding is 0, and counts as elements with count_include_pad; "
           "divisor_override replaces the number of elements.",
    .samples = "t(2, 3, 6, 5), 2\n"
               "t(3, 7, 8), [3, 2], [2, 1], [1, 0]\n"
               "t(1, 2, 8, 9), 3, 2, 1, ceil_mode=True\n"
               "t(1, 2, 8, 9), 3, 2, 1, True, False\n"
               "t(1, 2, 6, 6), 2, divisor_override=3\n"
               "t(0, 2, 4, 4), 2",
    .forward = forward,
    .backward = backward,
};
