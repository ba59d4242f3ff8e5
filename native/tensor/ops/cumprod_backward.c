/* tensor/ops/cumprod_backward.c -- core::cumprod_backward: the gradient through cumprod. */
#include "tensor/ops/rows.h"

/* Up to the first zero each gradient is the sum of what follows, times product, over the element. The zero's
 * own is the sum of the products without it; behind it all products stay zero. */
#define LOOP(name, type)                                                                             \
    static void name(char *out, const char *const *inputs, int64_t begin, int64_t end, int64_t width)  \
    {                                                                                                  \
        for (int64_t i = begin; i < end; i++) {                                                        \
            const type *g = (const type *)(const void *)inputs[0] + i * width;                         \
            const type *x = (const type *)(const void *)inputs[1] + i * width;                         \
            type *to = (type *)(void *)out + i * width;                                                \
            int64_t zero = 0;                                                                          \
            double product = 1, sum = 0;                                                               \
            for (; zero < width && x[zero] != 0; zero++) {                                             \
                product *= (double)x[zero];                                                            \
                to[zero] = (type)product;                                                              \
            }                                                                                          \
            for (int64_t j = zero; j < width; j++) {                                                   \
                product *= j == zero ? 1 : (double)x[j];                                               \
                sum += (double)g[j] * product;                                                         \
                to[j] = 0;                                                                             \
            }                                                                                          \
            if (zero < width) {                                                                        \
                to[zero] = (type)sum;                                                                  \
            }                                                                                          \
            sum = 0;                                                                                   \
            for (int64_t j = zero - 1; j >= 0; j--) {                                                  \
                sum += (double)g[j] * (double)to[j];                                                   \
                to[j] = (type)(sum / (double)x[j]);                                                    \
            }                                                                                          \
        }                                                                                              \
    }

LOOP(slope_float32, float)
LOOP(slope_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const opscope__row_loop loops[OPSCOPE_DTYPE_COUNT] = OPSCOPE__FLOAT_ROWS(slope);
    return opscope__along_argument(call, loops, arguments[0].as.tensor, arguments[1].as.tensor,
                                   &arguments[2], 8, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(cumprod_backward) = {
    .schema = "cumprod_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
    .doc = "The gradient through cumprod, also where elements are zero.",
    .samples = "t(3, 4), t(3, 4), 1\n" "t(5, 4), (t(5, 4) > 0) * t(5, 4), 0",
    .forward = forward,
};
