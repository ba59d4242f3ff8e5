/* tensor/ops/reduce/sum.c -- core::sum: the sum over dimensions. */
#include "tensor/ops/reduce/reduction.h"

OPSCOPE__FOLD_SUM(sum_float32, float, double, float, float, s)
OPSCOPE__FOLD_SUM(sum_float64, double, double, double, double, s)
OPSCOPE__FOLD_SUM(sum_int32, int32_t, int64_t, int64_t, int64_t, s)
OPSCOPE__FOLD_SUM(sum_int64, int64_t, int64_t, int64_t, int64_t, s)
OPSCOPE__FOLD_SUM(sum_uint8, uint8_t, int64_t, int64_t, int64_t, s)

static const struct opscope__reduction reductions[OPSCOPE_DTYPE_COUNT] = OPSCOPE__FOLDS(sum, 0, 0);

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__reduce_arguments(call, reductions, opscope__widened, arguments, &arguments[3],
                                     outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *self = backward->inputs[0];
    opscope_tensor *grad =
        opscope__unreduce(&f, backward->gradients[0], self, &backward->arguments[1]);
    gradients[0] = opscope__keep(grad);
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(sum) = {
    .schema = "sum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) "
              "-> Tensor",
    .doc = "The sum over the dimensions in dim (all if it is absent or empty), which are "
           "removed, or kept with size 1 with keepdim. Integers and bools sum in int64. dtype "
           "converts the elements first, and is the dtype of the sum. float32 is summed over "
           "short stretches in float32, and over the stretches in double.",
    .samples = "t(3, 4)\n"
               "t(3, 4), [0]\n"
               "t(2, 3, 4), [0, -1], True",
    .forward = forward,
    .backward = backward,
};
