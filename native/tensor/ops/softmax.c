/* tensor/ops/softmax.c -- core::softmax: exponentials as shares of one. */
#include "tensor/ops/rows.h"

/* Less the largest of its row, no exponential overflows. */
#define LOOP(name, type, EXP, LOG)                                                                   \
    static void name(char *out, const char *const *inputs, int64_t begin, int64_t end, int64_t width)  \
    {                                                                                                  \
        for (int64_t i = begin; i < end; i++) {                                                        \
            const type *x = (const type *)(const void *)inputs[0] + i * width;                         \
            type *y = (type *)(void *)out + i * width;                                                 \
            type top = x[0];                                                                           \
            for (int64_t j = 1; j < width; j++) {                                                      \
                top = x[j] > top ? x[j] : top;                                                         \
            }                                                                                          \
            double sum = 0;                                                                            \
            for (int64_t j = 0; j < width; j++) {                                                      \
                y[j] = EXP(x[j] - top);                                                                \
            }                                                                                          \
            for (int64_t j = 0; j < width; j++) {                                                      \
                sum += (double)y[j];                                                                   \
            }                                                                                          \
            const type share = (type)(1 / sum);                                                        \
            for (int64_t j = 0; j < width; j++) {                                                      \
                y[j] *= share;                                                                         \
            }                                                                                          \
        }                                                                                              \
    }

LOOP(softmax_float32, float, expf, logf)
LOOP(softmax_float64, double, exp, log)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const opscope__row_loop loops[OPSCOPE_DTYPE_COUNT] = OPSCOPE__FLOAT_ROWS(softmax);
    return opscope__along_argument(call, loops, arguments[0].as.tensor, NULL, &arguments[1], 12,
                                   outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f(&f, "softmax_backward", opscope__T(grad),
                                            opscope__T(backward->saved[0]),
                                            backward->arguments[1]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(softmax) = {
    .schema = "softmax(Tensor self, int dim) -> Tensor",
    .doc = "exp(x) over the sum of exp(x) along dim, for floats.",
    .samples = "t(3, 4), 1\n" "t(3, 4), 0",
    .forward = forward,
    .backward = backward,
    .saves_outputs = 1,
};
