/* tensor/ops/adaptive_avg_pool2d.c -- core::adaptive_avg_pool2d: means of as many windows as are
 * asked for. */
#include "tensor/ops/averages.h"

OPSCOPE__AVERAGES(planes_float32, float)
OPSCOPE__AVERAGES(planes_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *input = arguments[0].as.tensor;
    const char *name = opscope__call_name(call);
    struct opscope__averages a = {.adapts = false};
    int64_t sizes[4];
    int status = opscope__pooling_read(name, input->dims, opscope__sizes(input),
                                       (opscope_dtype)input->dtype, &a.pooling);
    if (status == OPSCOPE_OK) {
        status = opscope__two_numbers(name, "output_size", &arguments[1], 0, a.pooling.out_size);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__averages_adapt(&a);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__pooling_sizes(&a.pooling, sizes);
    return opscope__averages_run(&a, planes_float32, planes_float64, input, sizes, outputs);
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
    .doc =
        "Each image of floats [batch, channels, height, width] or [channels, height, width] brought to "
        "output_size: the element at i of n is the mean of those from i size / n, rounded down, to "
        "(i + 1) size / n, rounded up.",
    .samples = "t(2, 3, 6, 5), [2, 3]\n"
               "t(3, 7, 8), 1\n"
               "t(1, 2, 3, 4), [5, 4]\n"
               "t(0, 2, 4, 4), 2",
    .forward = forward,
    .backward = backward,
};
