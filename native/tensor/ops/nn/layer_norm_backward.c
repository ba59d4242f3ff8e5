/* tensor/ops/nn/layer_norm_backward.c -- core::layer_norm_backward: the gradients through
 * layer_norm. */
#include "tensor/ops/nn/norm.h"

enum { BLOCK_LIMIT = 16, STRETCH = 64 };

struct layer {
    const opscope_tensor *grad, *input, *weight, *mean, *rstd, *to_input;
    int64_t rows, width, blocks;
    const opscope_tensor
        *narrow; /* [blocks, 2, width]: sums of a short stretch, in the elements' dtype */
    const opscope_tensor *sums; /* [blocks, 2, width]: sums of a block, in double */
};

/* Rows: g is the gradient times weight, h the normalized input; rstd * (g - mean(g) - h * mean(g *
 * h)). Sums over rows are added up by block, in the order of rows; the blocks do not depend on
 * threads. */
#define PARTS(name, type)                                                                          \
    OPSCOPE__RUN_SUM(name##_dot, type, a *b)                                                       \
    OPSCOPE__RUN_SUM(name##_dot_away, type, a *b *(c - m))                                         \
    static void name##_row(const struct layer *l, int64_t i, type *weights, type *biases)          \
    {                                                                                              \
        const int64_t width = l->width;                                                            \
        const type *w = OPSCOPE__NORM_DATA(const type, l->weight);                                 \
        const type *g = OPSCOPE__NORM_DATA(const type, l->grad) + i * width;                       \
        const type *x = OPSCOPE__NORM_DATA(const type, l->input) + i * width;                      \
        type *out = OPSCOPE__NORM_DATA(type, l->to_input) + i * width;                             \
        const type mean = OPSCOPE__NORM_DATA(const type, l->mean)[i];                              \
        const type rstd = OPSCOPE__NORM_DATA(const type, l->rstd)[i];                              \
        const type shift = (type)(name##_dot(g, w, w, 0, width) / (double)width);                  \
        const type slope = (type)(name##_dot_away(g, w, x, mean, width) / (double)width) * rstd;   \
        OPSCOPE__INDEPENDENT                                                                       \
        for (int64_t j = 0; j < width; j++) {                                                      \
            const type h = (x[j] - mean) * rstd;                                                   \
            out[j] = rstd * (g[j] * w[j] - shift - h * slope);                                     \
            weights[j] += g[j] * h;                                                                \
            biases[j] += g[j];                                                                     \
        }                                                                                          \
    }                                                                                              \
    static void name(int64_t begin, int64_t end, void *arg)                                        \
    {                                                                                              \
        const struct layer *l = arg;                                                               \
        for (int64_t block = begin; block < end; block++) {                                        \
            type *some = OPSCOPE__NORM_DATA(type, l->narrow) + block * 2 * l->width;               \
            double *sums = OPSCOPE__NORM_DATA(double, l->sums) + block * 2 * l->width;             \
            int64_t i = l->rows * block / l->blocks, last = l->rows * (block + 1) / l->blocks;     \
            while (i < last) {                                                                     \
                int64_t stop = last - i < STRETCH ? last : i + STRETCH;                            \
                memset(some, 0, 2 * (size_t)l->width * sizeof *some);                              \
                for (; i < stop; i++) {                                                            \
                    name##_row(l, i, some, some + l->width);                                       \
                }                                                                                  \
                for (int64_t j = 0; j < 2 * l->width; j++) {                                       \
                    sums[j] += (double)some[j];                                                    \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name##_join(const struct layer *l, const opscope_tensor *to, int64_t first)        \
    {                                                                                              \
        const double *sums = OPSCOPE__NORM_DATA(const double, l->sums) + first;                    \
        for (int64_t j = 0; j < l->width; j++) {                                                   \
            double sum = 0;                                                                        \
            for (int64_t block = 0; block < l->blocks; block++) {                                  \
                sum += sums[block * 2 * l->width + j];                                             \
            }                                                                                      \
            OPSCOPE__NORM_DATA(type, to)[j] = (type)sum;                                           \
        }                                                                                          \
    }

PARTS(float32, float)
PARTS(float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *grad = arguments[0].as.tensor, *self = arguments[1].as.tensor;
    opscope_tensor *t[7] = {NULL}, *made[3] = {NULL};
    opscope_dtype dtype = (opscope_dtype)self->dtype;
    int count = (int)arguments[5].count, leading = self->dims - count;
    const int64_t *shape = arguments[5].as.integers;
    if (leading < 0 || (dtype != OPSCOPE_FLOAT32 && dtype != OPSCOPE_FLOAT64) ||
        grad->dtype != self->dtype || !opscope__same_sizes(grad, self) ||
        memcmp(opscope__sizes(self) + leading, shape, (size_t)count * sizeof *shape) != 0) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: gradient of sizes %s, input of sizes %s: expected floats of equal "
            "sizes that end with normalized_shape %s",
            name, opscope__shape_text(grad).text, opscope__shape_text(self).text,
            opscope__sizes_text(count, shape).text);
    }
    int64_t width = opscope__count_of(count, shape);
    int64_t rows = opscope__count_of(leading, opscope__sizes(self));
    int64_t blocks = rows / STRETCH < BLOCK_LIMIT ? rows / STRETCH + 1 : BLOCK_LIMIT;
    const int64_t parts[] = {blocks, 2, width};
    int status = opscope__contiguous(grad, &t[0]);
    if (status == OPSCOPE_OK && (status = opscope__contiguous(self, &t[1])) == OPSCOPE_OK &&
        (status = opscope__norm_operand(name, &arguments[4], "weight", 1, width, dtype, &t[2])) ==
            OPSCOPE_OK &&
        (status = opscope__norm_operand(name, &arguments[2], "mean", 0, rows, dtype, &t[3])) ==
            OPSCOPE_OK &&
        (status = opscope__norm_operand(name, &arguments[3], "rstd", 0, rows, dtype, &t[4])) ==
            OPSCOPE_OK &&
        (status = opscope__tensor_empty(self->dims, opscope__sizes(self), dtype, &made[0])) ==
            OPSCOPE_OK &&
        (status = opscope__tensor_empty(count, shape, dtype, &made[1])) == OPSCOPE_OK &&
        (status = opscope__tensor_empty(count, shape, dtype, &made[2])) == OPSCOPE_OK &&
        (status = opscope__tensor_empty(3, parts, dtype, &t[5])) == OPSCOPE_OK &&
        (status = opscope__tensor_empty(3, parts, OPSCOPE_FLOAT64, &t[6])) == OPSCOPE_OK) {
        struct layer layer = {t[0], t[1],  t[2],   t[3], t[4], made[0],
                              rows, width, blocks, t[5], t[6]};
        bool is_narrow = dtype == OPSCOPE_FLOAT32;
        if (width > 0) {
            memset(t[6]->data, 0, (size_t)t[6]->count * sizeof(double));
        }
        opscope__parallel(width > 0 ? blocks : 0,
                          OPSCOPE__GRAIN * blocks / (rows * width * 6 + 1) + 1,
                          is_narrow ? float32 : float64, &layer);
        for (int i = 0; i < 2; i++) {
            (is_narrow ? float32_join : float64_join)(&layer, made[1 + i], i * width);
        }
    }
    for (int i = 0; i < 7; i++) {
        opscope_tensor_release(t[i]);
    }
    for (int i = 0; i < 3; i++) {
        outputs[i] = made[i];
    }
    return status;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(layer_norm_backward) = {
    .schema =
        "layer_norm_backward(Tensor grad_output, Tensor input, Tensor mean, Tensor rstd, Tensor? "
        "weight, int[] normalized_shape) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
    .doc = "The gradients of layer_norm's input, weight and bias; mean and rstd have one number "
           "for each group that was normalized together.",
    .samples = "t(3, 5), t(3, 5), t(3), p(3), t(5), [5]\n"
               "t(2, 3, 4), t(2, 3, 4), t(2), p(2), None, [3, 4]",
    .forward = forward,
};
