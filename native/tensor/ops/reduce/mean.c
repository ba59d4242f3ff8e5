/* tensor/ops/reduce/mean.c -- core::mean: the mean over dimensions. */
#include "tensor/ops/reduce/reduction.h"

OPSCOPE__FOLD_SUM(mean_float32, float, double, float, float, s / (double)folded)
OPSCOPE__FOLD_SUM(mean_float64, double, double, double, double, s / (double)folded)

static const struct opscope__reduction reductions[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = OPSCOPE__FOLDED(mean_float32, 0, 1),
    [OPSCOPE_FLOAT64] = OPSCOPE__FOLDED(mean_float64, 0, 1),
};

static const opscope_dtype outputs_as[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = OPSCOPE_FLOAT32,
    [OPSCOPE_FLOAT64] = OPSCOPE_FLOAT64,
};

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__reduce_arguments(call, reductions, outputs_as, arguments, &arguments[3],
                                     outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *self = backward->inputs[0], *mean = backward->gradients[0];
    opscope_tensor *grad =
        opscope__unreduce(&f, backward->gradients[0], self, &backward->arguments[1]);
    int64_t folded = mean != NULL && mean->count > 0 ? self->count / mean->count : 0;
    gradients[0] =
        opscope__keep(opscope__fr(&f, "mul", grad, 1.0 / (double)(folded > 0 ? folded : 1)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(mean) = {
    .schema = "mean(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) "
              "-> Tensor",
    .doc = "The mean over the dimensions in dim (all if it is absent or empty), which are "
           "removed, or kept with size 1 with keepdim. For floats; NaN for no elements.",
    .samples = "t(3, 4)\n"
               "t(3, 4), [0]",
    .forward = forward,
    .backward = backward,
};
