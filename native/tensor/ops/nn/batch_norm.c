/* tensor/ops/nn/batch_norm.c -- core::batch_norm: normalizes each channel to mean 0 and variance
 * 1. */
#include "opscope/autograd.h"
#include "tensor/ops/nn/channels.h"

struct batch {
    struct opscope__channels at;
    const opscope_tensor *input, *weight, *bias, *mean, *rstd, *out;
    opscope_tensor *running_mean, *running_var; /* NULL: not tracked */
    bool training;
    double momentum, eps;
};

/* Computes the statistics of channels begin to end, then their elements. */
#define PARTS(name, type)                                                                          \
    OPSCOPE__RUN_SUM(name##_sum, type, a)                                                          \
    OPSCOPE__RUN_SUM(name##_squares, type, (a - m) * (a - m))                                      \
    OPSCOPE__CHANNEL_SUM(name##_sums, type, name##_sum, a)                                         \
    OPSCOPE__CHANNEL_SUM(name##_spreads, type, name##_squares, (a - m) * (a - m))                  \
    static void name##_statistics(const struct batch *b, int64_t begin, int64_t end)               \
    {                                                                                              \
        type *mean = OPSCOPE__NORM_DATA(type, b->mean), *rstd = OPSCOPE__NORM_DATA(type, b->rstd); \
        bool is_kept = b->running_mean != NULL;                                                    \
        type *means = is_kept ? OPSCOPE__NORM_DATA(type, b->running_mean) : NULL;                  \
        type *variances = is_kept ? OPSCOPE__NORM_DATA(type, b->running_var) : NULL;               \
        const type *x = OPSCOPE__NORM_DATA(const type, b->input);                                  \
        const double count = (double)(b->at.rows * b->at.inner);                                   \
        double sums[OPSCOPE__CHANNEL_BLOCK];                                                       \
        if (!b->training) {                                                                        \
            for (int64_t c = begin; c < end; c++) {                                                \
                mean[c] = means[c];                                                                \
                rstd[c] = (type)(1 / sqrt((double)variances[c] + b->eps));                         \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        name##_sums(&b->at, x, x, mean, begin, end, sums);                                         \
        for (int64_t c = begin; c < end; c++) {                                                    \
            mean[c] = (type)(sums[c - begin] / count);                                             \
        }                                                                                          \
        name##_spreads(&b->at, x, x, mean, begin, end, sums);                                      \
        for (int64_t c = begin; c < end; c++) {                                                    \
            rstd[c] = (type)(1 / sqrt(sums[c - begin] / count + b->eps));                          \
            if (is_kept) {                                                                         \
                means[c] =                                                                         \
                    (type)((1 - b->momentum) * (double)means[c] + b->momentum * (double)mean[c]);  \
                variances[c] = (type)((1 - b->momentum) * (double)variances[c] +                   \
                                      b->momentum * sums[c - begin] / (count - 1));                \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name(int64_t begin, int64_t end, void *arg)                                        \
    {                                                                                              \
        const struct batch *b = arg;                                                               \
        const type *weight = OPSCOPE__NORM_DATA(const type, b->weight);                            \
        const type *bias = OPSCOPE__NORM_DATA(const type, b->bias);                                \
        const type *mean = OPSCOPE__NORM_DATA(const type, b->mean);                                \
        const type *rstd = OPSCOPE__NORM_DATA(const type, b->rstd);                                \
        const struct opscope__channels at = b->at;                                                 \
        for (int64_t first = begin; first < end; first += OPSCOPE__CHANNEL_BLOCK) {                \
            int64_t last =                                                                         \
                end - first < OPSCOPE__CHANNEL_BLOCK ? end : first + OPSCOPE__CHANNEL_BLOCK;       \
            name##_statistics(b, first, last);                                                     \
            for (int64_t i = 0; i < at.rows; i++) {                                                \
                const int64_t flat_last = at.inner == 1 ? last : first;                            \
                const type *x =                                                                    \
                    OPSCOPE__NORM_DATA(const type, b->input) + i * at.channels * at.inner;         \
                type *y = OPSCOPE__NORM_DATA(type, b->out) + i * at.channels * at.inner;           \
                for (int64_t c = first; c < last && at.inner != 1; c++) {                          \
                    const type scale = weight[c] * rstd[c], center = mean[c], shift = bias[c];     \
                    OPSCOPE__INDEPENDENT                                                           \
                    for (int64_t j = c * at.inner; j < (c + 1) * at.inner; j++) {                  \
                        y[j] = (x[j] - center) * scale + shift;                                    \
                    }                                                                              \
                }                                                                                  \
                OPSCOPE__INDEPENDENT                                                               \
                for (int64_t c = first; c < flat_last; c++) {                                      \
                    y[c] = (x[c] - mean[c]) * (weight[c] * rstd[c]) + bias[c];                     \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

PARTS(part_float32, float)
PARTS(part_float64, double)

/* Gets a running statistic: the tensor itself, because training writes it; NULL if it is absent. */
static int running(const char *name, const opscope_argument *argument, const char *what,
                   bool training, int64_t channels, opscope_dtype dtype, opscope_tensor **out)
{
    if (argument->kind == OPSCOPE_ARGUMENT_NONE && training) {
        return OPSCOPE_OK;
    }
    if (argument->kind == OPSCOPE_ARGUMENT_NONE) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "%s: %s is absent; it is needed where training is false", name,
                                   what);
    }
    opscope_tensor *tensor = argument->as.tensor;
    if (training && !tensor->is_contiguous) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "%s: %s is written in place and must be contiguous", name, what);
    }
    int status = training ? opscope__check_written(name, tensor) : OPSCOPE_OK;
    return status == OPSCOPE_OK
               ? opscope__norm_operand(name, argument, what, 0, channels, dtype, out)
               : status;
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor, *t[7] = {NULL};
    opscope_dtype dtype = (opscope_dtype)self->dtype;
    bool training = arguments[5].as.integer != 0;
    struct batch b = {
        .training = training, .momentum = arguments[6].as.real, .eps = arguments[7].as.real};
    int status = opscope__channels_of(name, self, &b.at);
    if (status == OPSCOPE_OK && training && b.at.rows * b.at.inner == 1) {
        status = opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE,
            "%s: one value for each channel (sizes %s) has no variance; training "
            "needs more",
            name, opscope__shape_text(self).text);
    }
    int64_t channels = b.at.channels;
    if (status == OPSCOPE_OK &&
        (status = opscope__norm_operand(name, &arguments[1], "weight", 1, channels, dtype,
                                        &t[0])) == OPSCOPE_OK &&
        (status = opscope__norm_operand(name, &arguments[2], "bias", 0, channels, dtype, &t[1])) ==
            OPSCOPE_OK &&
        (status = running(name, &arguments[3], "running_mean", training, channels, dtype, &t[2])) ==
            OPSCOPE_OK &&
        (status = running(name, &arguments[4], "running_var", training, channels, dtype, &t[3])) ==
            OPSCOPE_OK &&
        (status = opscope__contiguous(self, &t[4])) == OPSCOPE_OK &&
        (status = opscope__tensor_empty(1, &channels, dtype, &t[5])) == OPSCOPE_OK &&
        (status = opscope__tensor_empty(1, &channels, dtype, &t[6])) == OPSCOPE_OK &&
        (t[2] == NULL) != (t[3] == NULL)) {
        status =
            opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                "%s: running_mean and running_var are kept both, or neither", name);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(self->dims, opscope__sizes(self), dtype, &outputs[0]);
    }
    if (status == OPSCOPE_OK) {
        b.weight = t[0];
        b.bias = t[1];
        b.running_mean = t[2];
        b.running_var = t[3];
        b.input = t[4];
        b.mean = t[5];
        b.rstd = t[6];
        b.out = outputs[0];
        opscope__parallel(channels, OPSCOPE__GRAIN / (b.at.rows * b.at.inner * 4 + 1) + 1,
                          dtype == OPSCOPE_FLOAT32 ? part_float32 : part_float64, &b);
        for (int i = 2; i < 4 && training && t[i] != NULL; i++) {
            opscope__tensor_written(t[i]);
        }
        opscope__call_save(call, t[5]);
        opscope__call_save(call, t[6]);
    }
    for (int i = 0; i < 7; i++) {
        opscope_tensor_release(t[i]);
    }
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    const opscope_argument *a = backward->arguments;
    if (!opscope_grad_mode()) {
        return opscope__norm_backward(backward, "batch_norm_backward", &a[1], &a[5], gradients);
    }
    const opscope_tensor *input = backward->inputs[0];
    bool training = a[5].as.integer != 0;
    int64_t others[OPSCOPE_DIM_LIMIT], like[OPSCOPE_DIM_LIMIT];
    for (int i = 0; i < input->dims; i++) {
        like[i] = i == 1 ? opscope__sizes(input)[1] : 1;
        others[i > 1 ? i - 1 : 0] = i != 1 ? i : 0;
    }
    const opscope_argument all_but_channels = opscope__L(others, input->dims - 1);
    const struct opscope__norm_shape shape = {all_but_channels, all_but_channels,
                                              opscope__L(like, input->dims)};
    return opscope__norm_on_tape(backward, &shape, &a[1], training ? NULL : backward->saved[0],
                                 training ? NULL : backward->saved[1], a[7].as.real, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(batch_norm) = {
    .schema =
        "batch_norm(Tensor input, Tensor? weight=None, Tensor? bias=None, Tensor? running_mean=None, "
        "Tensor? running_var=None, bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
    .doc = "(x - mean) / sqrt(variance + eps) * weight + bias for each channel: input is "
           "[batch, channels, ...], all others [channels]. In training, mean and variance (of "
           "the population) are the batch's, and the running ones move towards them by momentum "
           "(the variance's unbiased estimate); otherwise the running ones are used. "
           "Definition: Ioffe and Szegedy 2015. @s \"%s: %s is absent; it is needed where "
           "training is false\" @t \"%s: %s is required unless training is true\" @s \"%s: "
           "running_mean and running_var are kept both, or neither\" @t \"%s: expected both "
           "running_mean and running_var, or neither\"",
    .samples = "t(4, 3), p(3), t(3), c(3), c(3)\n"
               "t(2, 3, 4, 5), p(3), t(3), None, None, True\n"
               "t(2, 3, 4), None, None, None, None, True, 0.3, 0.01\n"
               "t(5, 3), p(3), t(3), None, None, True",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
};
