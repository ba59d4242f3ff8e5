/* tensor/ops/log_softmax_backward.c -- core::log_softmax_backward: the gradient through log_softmax. */
#include "tensor/ops/rows.h"

#define LOOP(name, type, EXP)                                                                        \
    static void name(char *out, const char *const *inputs, int64_t begin, int64_t end, int64_t width)  \
    {                                                                                                  \
        for (int64_t i = begin; i < end; i++) {                                                        \
            const type *g = (const type *)(const void *)inputs[0] + i * width;                         \
            const type *y = (const type *)(const void *)inputs[1] + i * width;                         \
            type *out_row = (type *)(void *)out + i * width;                                           \
            double sum = 0;                                                                            \
            for (int64_t j = 0; j < width; j++) {                                                      \
                sum += (double)(g[j]);                                                                   \
            }                                                                                          \
            for (int64_t j = 0; j < width; j++) {                                                      \
                out_row[j] = g[j] - EXP(y[j]) * (type)sum;                                                                       \
            }                                                                                          \
        }                                                                                              \
    }

LOOP(log_softmax_backward_float32, float, expf)
LOOP(log_softmax_backward_float64, double, exp)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const opscope__row_loop loops[OPSCOPE_DTYPE_COUNT] = OPSCOPE__FLOAT_ROWS(log_softmax_backward);
    return opscope__along_argument(call, loops, arguments[0].as.tensor, arguments[1].as.tensor,
                                   &arguments[2], 4, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(log_softmax_backward) = {
    .schema = "log_softmax_backward(Tensor grad_output, Tensor output, int dim) -> Tensor",
    .doc = "grad_output - exp(output) * sum(grad_output) along dim: the gradient through "
           "log_softmax.",
    .samples = "t(3, 4), t(3, 4), 1",
    .forward = forward,
};
