/* tensor/ops/nn/adaptive_avg_pool2d.c -- core::adaptive_avg_pool2d: means over a given number of
 * windows. */
#include "tensor/ops/nn/averages.h"

OPSCOPE__AVERAGES(planes_float32, float)
OPSCOPE__AVERAGES(planes_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *input = arguments[0].as.tensor;
    const char *name = opscope__call_name(call);
    struct opscope__averages a = {.adapts = false};
    int status = opscope__pooling_read(name, input->dims, opscope__sizes(input),
                                       (opscope_dtype)input->dtype, &a.pooling);
    if (status == OPSCOPE_OK) {
        status = opscope__two_numbers(name, "output_size", &arguments[1], 0, a.pooling.out_size);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__averages_adapt(&a);
    }
    return status == OPSCOPE_OK
               ? opscope__averages_forward(&a, planes_float32, planes_float64, input, outputs)
               : status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *input = backward->inputs[0];
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f(&f, "adaptive_avg_pool2d_backward", opscope__T(grad),
                                            opscope__L(opscope__sizes(input), input->dims)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(adaptive_avg_pool2d) = {
    .schema = "adaptive_avg_pool2d(Tensor input, int[2] output_size) -> Tensor",
    .doc = "Reduces each image of floats [batch, channels, height, width] or [channels, height, "
           "width] to output_size: element i of n is the mean of the elements from i size / n, "
           "rounded down, to (i + 1) size / n, rounded up.",
    .samples = "t(2, 3, 6, 5), [2, 3]\n"
               "t(3, 7, 8), 1\n"
               "t(1, 2, 3, 4), [5, 4]\n"
               "t(0, 2, 4, 4), 2",
    .forward = forward,
    .backward = backward,
};
