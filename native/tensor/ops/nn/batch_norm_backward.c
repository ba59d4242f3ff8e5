/* tensor/ops/nn/batch_norm_backward.c -- core::batch_norm_backward: the gradients through
 * batch_norm. */
#include "tensor/ops/nn/channels.h"

struct batch {
    struct opscope__channels at;
    const opscope_tensor *grad, *input, *weight, *mean, *rstd, *to_input, *to_weight, *to_bias;
    bool training;
};

/* With h the normalized input: weight * rstd * (g - mean(g) - h * mean(g * h)); without the batch's
 * own statistics, weight * rstd * g. */
#define PARTS(name, type)                                                                          \
    OPSCOPE__RUN_SUM(name##_sum, type, a)                                                          \
    OPSCOPE__RUN_SUM(name##_dot, type, a *(b - m))                                                 \
    OPSCOPE__CHANNEL_SUM(name##_sums, type, name##_sum, a)                                         \
    OPSCOPE__CHANNEL_SUM(name##_dots, type, name##_dot, a *(b - m))                                \
    static void name##_block(const struct batch *b, int64_t first, int64_t last)                   \
    {                                                                                              \
        const struct opscope__channels at = b->at;                                                 \
        const type *g = OPSCOPE__NORM_DATA(const type, b->grad);                                   \
        const type *x = OPSCOPE__NORM_DATA(const type, b->input);                                  \
        const type *mean = OPSCOPE__NORM_DATA(const type, b->mean);                                \
        const type *rstd = OPSCOPE__NORM_DATA(const type, b->rstd);                                \
        double sums[OPSCOPE__CHANNEL_BLOCK], dots[OPSCOPE__CHANNEL_BLOCK];                         \
        type scales[OPSCOPE__CHANNEL_BLOCK], shifts[OPSCOPE__CHANNEL_BLOCK];                       \
        type slopes[OPSCOPE__CHANNEL_BLOCK];                                                       \
        const double count = (double)(at.rows * at.inner);                                         \
        name##_sums(&at, g, g, mean, first, last, sums);                                           \
        name##_dots(&at, g, x, mean, first, last, dots);                                           \
        for (int64_t c = 0; c < last - first; c++) {                                               \
            const double deviation = (double)rstd[first + c];                                      \
            OPSCOPE__NORM_DATA(type, b->to_weight)[first + c] = (type)(dots[c] * deviation);       \
            OPSCOPE__NORM_DATA(type, b->to_bias)[first + c] = (type)sums[c];                       \
            scales[c] = OPSCOPE__NORM_DATA(const type, b->weight)[first + c] * rstd[first + c];    \
            shifts[c] = b->training ? (type)(sums[c] / count) : 0;                                 \
            slopes[c] = b->training ? (type)(dots[c] / count * deviation * deviation) : 0;         \
        }                                                                                          \
        const int64_t flat_count = at.inner == 1 ? last - first : 0;                               \
        for (int64_t i = 0; i < at.rows; i++) {                                                    \
            int64_t start = (i * at.channels + first) * at.inner;                                  \
            const type *from = g + start, *in = x + start, *center = mean + first;                 \
            type *out = OPSCOPE__NORM_DATA(type, b->to_input) + start;                             \
            for (int64_t c = 0; c < last - first && at.inner != 1; c++) {                          \
                const type scale = scales[c], shift = shifts[c], slope = slopes[c], m = center[c]; \
                OPSCOPE__INDEPENDENT                                                               \
                for (int64_t j = c * at.inner; j < (c + 1) * at.inner; j++) {                      \
                    out[j] = scale * (from[j] - shift - (in[j] - m) * slope);                      \
                }                                                                                  \
            }                                                                                      \
            OPSCOPE__INDEPENDENT                                                                   \
            for (int64_t c = 0; c < flat_count; c++) {                                             \
                out[c] = scales[c] * (from[c] - shifts[c] - (in[c] - center[c]) * slopes[c]);      \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name(int64_t begin, int64_t end, void *arg)                                        \
    {                                                                                              \
        for (int64_t first = begin; first < end; first += OPSCOPE__CHANNEL_BLOCK) {                \
            int64_t left = end - first;                                                            \
            name##_block(arg, first,                                                               \
                         left < OPSCOPE__CHANNEL_BLOCK ? end : first + OPSCOPE__CHANNEL_BLOCK);    \
        }                                                                                          \
    }

PARTS(part_float32, float)
PARTS(part_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *grad = arguments[0].as.tensor, *self = arguments[1].as.tensor, *t[5] = {NULL};
    opscope_dtype dtype = (opscope_dtype)self->dtype;
    struct batch b = {.training = arguments[5].as.integer != 0};
    int status = opscope__channels_of(name, self, &b.at);
    if (status == OPSCOPE_OK && (grad->dtype != self->dtype || !opscope__same_sizes(grad, self))) {
        status = opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: gradient %s of sizes %s, input %s of sizes %s; they must be equal", name,
            opscope_dtype_name((opscope_dtype)grad->dtype), opscope__shape_text(grad).text,
            opscope_dtype_name(dtype), opscope__shape_text(self).text);
    }
    int64_t channels = b.at.channels;
    if (status == OPSCOPE_OK && (status = opscope__contiguous(grad, &t[0])) == OPSCOPE_OK &&
        (status = opscope__contiguous(self, &t[1])) == OPSCOPE_OK &&
        (status = opscope__norm_operand(name, &arguments[4], "weight", 1, channels, dtype,
                                        &t[2])) == OPSCOPE_OK &&
        (status = opscope__norm_operand(name, &arguments[2], "mean", 0, channels, dtype, &t[3])) ==
            OPSCOPE_OK &&
        (status = opscope__norm_operand(name, &arguments[3], "rstd", 0, channels, dtype, &t[4])) ==
            OPSCOPE_OK &&
        (status = opscope__tensor_empty(self->dims, opscope__sizes(self), dtype, &outputs[0])) ==
            OPSCOPE_OK &&
        (status = opscope__tensor_empty(1, &channels, dtype, &outputs[1])) == OPSCOPE_OK &&
        (status = opscope__tensor_empty(1, &channels, dtype, &outputs[2])) == OPSCOPE_OK) {
        b.grad = t[0];
        b.input = t[1];
        b.weight = t[2];
        b.mean = t[3];
        b.rstd = t[4];
        b.to_input = outputs[0];
        b.to_weight = outputs[1];
        b.to_bias = outputs[2];
        opscope__parallel(channels, OPSCOPE__GRAIN / (b.at.rows * b.at.inner * 4 + 1) + 1,
                          dtype == OPSCOPE_FLOAT32 ? part_float32 : part_float64, &b);
    }
    for (int i = 0; i < 5; i++) {
        opscope_tensor_release(t[i]);
    }
    return status;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(batch_norm_backward) = {
    .schema =
        "batch_norm_backward(Tensor grad_output, Tensor input, Tensor mean, Tensor rstd, Tensor? "
        "weight, bool training) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
    .doc = "The gradients of batch_norm's input, weight and bias. mean and rstd are those that "
           "the forward used; with training, those of the batch.",
    .samples = "t(4, 3), t(4, 3), t(3), p(3), t(3), True\n"
               "t(2, 3, 4), t(2, 3, 4), t(3), p(3), None, False",
    .forward = forward,
};
