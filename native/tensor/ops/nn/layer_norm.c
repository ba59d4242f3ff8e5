/* tensor/ops/nn/layer_norm.c -- core::layer_norm: normalizes each row to mean 0 and variance 1. */
#include "opscope/autograd.h"
#include "tensor/ops/nn/norm.h"

struct layer {
    const opscope_tensor *input, *weight, *bias, *mean, *rstd, *out;
    int64_t width;
    double eps;
};

#define ROWS(name, type)                                                                           \
    OPSCOPE__RUN_SUM(name##_sum, type, a)                                                          \
    OPSCOPE__RUN_SUM(name##_squares, type, (a - m) * (a - m))                                      \
    static void name(int64_t begin, int64_t end, void *arg)                                        \
    {                                                                                              \
        const struct layer *l = arg;                                                               \
        const type *weight = OPSCOPE__NORM_DATA(const type, l->weight);                            \
        const type *bias = OPSCOPE__NORM_DATA(const type, l->bias);                                \
        const double width = (double)l->width;                                                     \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const type *x = OPSCOPE__NORM_DATA(const type, l->input) + i * l->width;               \
            type *y = OPSCOPE__NORM_DATA(type, l->out) + i * l->width;                             \
            const type mean = (type)(name##_sum(x, x, x, 0, l->width) / width);                    \
            const double variance = name##_squares(x, x, x, mean, l->width) / width;               \
            const type rstd = (type)(1 / sqrt(variance + l->eps));                                 \
            OPSCOPE__NORM_DATA(type, l->mean)[i] = mean;                                           \
            OPSCOPE__NORM_DATA(type, l->rstd)[i] = rstd;                                           \
            OPSCOPE__INDEPENDENT                                                                   \
            for (int64_t j = 0; j < l->width; j++) {                                               \
                y[j] = (x[j] - mean) * rstd * weight[j] + bias[j];                                 \
            }                                                                                      \
        }                                                                                          \
    }

ROWS(rows_float32, float)
ROWS(rows_float64, double)

/* The number of elements normalized together; 0 if the shape is not that of the last dimensions. */
static int check(const char *name, const opscope_tensor *input, const opscope_argument *shape)
{
    int count = (int)shape->count, first = input->dims - count;
    bool fits = count > 0 && first >= 0 &&
                memcmp(opscope__sizes(input) + first, shape->as.integers,
                       shape->count * sizeof(int64_t)) == 0;
    if (!fits || (input->dtype != OPSCOPE_FLOAT32 && input->dtype != OPSCOPE_FLOAT64)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: %s input of sizes %s, normalized_shape %s: expected floats whose last "
            "sizes are normalized_shape",
            name, opscope_dtype_name((opscope_dtype)input->dtype), opscope__shape_text(input).text,
            opscope__sizes_text(count, shape->as.integers).text);
    }
    return OPSCOPE_OK;
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    opscope_tensor *input = NULL, *weight = NULL, *bias = NULL, *made = NULL, *mean = NULL,
                   *rstd = NULL;
    opscope_dtype dtype = (opscope_dtype)self->dtype;
    int status = check(name, self, &arguments[1]);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int leading = self->dims - (int)arguments[1].count;
    int64_t width = opscope__count_of((int)arguments[1].count, arguments[1].as.integers);
    int64_t rows = opscope__count_of(leading, opscope__sizes(self));
    if ((status = opscope__norm_operand(name, &arguments[2], "weight", 1, width, dtype, &weight)) ==
            OPSCOPE_OK &&
        (status = opscope__norm_operand(name, &arguments[3], "bias", 0, width, dtype, &bias)) ==
            OPSCOPE_OK &&
        (status = opscope__contiguous(self, &input)) == OPSCOPE_OK &&
        (status = opscope__tensor_empty(1, &rows, dtype, &mean)) == OPSCOPE_OK &&
        (status = opscope__tensor_empty(1, &rows, dtype, &rstd)) == OPSCOPE_OK &&
        (status = opscope__tensor_empty(self->dims, opscope__sizes(self), dtype, &made)) ==
            OPSCOPE_OK) {
        struct layer layer = {input, weight, bias, mean, rstd, made, width, arguments[4].as.real};
        opscope__parallel(rows, OPSCOPE__GRAIN / (width * 4 + 1) + 1,
                          dtype == OPSCOPE_FLOAT32 ? rows_float32 : rows_float64, &layer);
        opscope__call_save(call, mean);
        opscope__call_save(call, rstd);
        outputs[0] = made;
    }
    opscope_tensor_release(input);
    opscope_tensor_release(weight);
    opscope_tensor_release(bias);
    opscope_tensor_release(mean);
    opscope_tensor_release(rstd);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    const opscope_argument *a = backward->arguments;
    if (!opscope_grad_mode()) {
        return opscope__norm_backward(backward, "layer_norm_backward", &a[2], &a[1], gradients);
    }
    int dims = backward->inputs[0]->dims, kept = dims - (int)a[1].count;
    int64_t order[OPSCOPE_DIM_LIMIT];
    for (int i = 0; i < dims; i++) {
        order[i] = i;
    }
    const struct opscope__norm_shape shape = {opscope__L(order + kept, dims - kept),
                                              opscope__L(order, kept), a[1]};
    return opscope__norm_on_tape(backward, &shape, &a[2], NULL, NULL, a[4].as.real, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(layer_norm) = {
    .schema =
        "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
        "float eps=1e-05) -> Tensor",
    .doc = "(x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance (of the "
           "population) over the last dimensions. normalized_shape has their sizes, and so have "
           "weight and bias. Definition: Ba, Kiros and Hinton 2016.",
    .samples = "t(3, 5), [5]\n"
               "t(2, 3, 4), [3, 4], t(3, 4), t(3, 4)\n"
               "t(2, 3, 40), [40], p(40), None, 0.1",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
};
