/* tensor/ops/nn/native_dropout.c -- core::native_dropout: zeroes random elements, and returns the
 * mask. */
#include "tensor/core/shape.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"
#include "tensor/kernels/parallel.h"
#include "tensor/kernels/random.h"
#include "tensor/ops/elementwise/loops.h"

struct draw {
    opscope__stretch stretch;
    uint64_t threshold; /* of 2^53: numbers below it drop the element */
    double scale;
    const char *in;
    char *out;
    uint8_t *mask;
};

/* Each element has its own number in the range, so the number of threads does not change the
 * result. */
#define PART(name, type)                                                                           \
    static void name(int64_t begin, int64_t end, void *arg)                                        \
    {                                                                                              \
        const struct draw *d = arg;                                                                \
        const type *in = (const type *)(const void *)d->in, scale = (type)d->scale;                \
        type *out = (type *)(void *)d->out;                                                        \
        OPSCOPE__INDEPENDENT                                                                       \
        for (int64_t i = begin; i < end; i++) {                                                    \
            opscope__stretch one = {d->stretch.counter + (uint64_t)i * 0x9E3779B97F4A7C15u};       \
            const bool keeps = opscope__draw_bits(&one) >> 11 >= d->threshold;                     \
            d->mask[i] = keeps;                                                                    \
            out[i] = keeps ? in[i] * scale : 0;                                                    \
        }                                                                                          \
    }

PART(part_float32, float)
PART(part_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor, *input = NULL;
    double p = arguments[1].as.real;
    if ((self->dtype != OPSCOPE_FLOAT32 && self->dtype != OPSCOPE_FLOAT64) || !(p >= 0 && p <= 1)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE,
            "%s: %s of sizes %s with p = %g: expected floats and p within 0 and 1", name,
            opscope_dtype_name((opscope_dtype)self->dtype), opscope__shape_text(self).text, p);
    }
    int status = opscope__contiguous(self, &input);
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(self->dims, opscope__sizes(self), (opscope_dtype)self->dtype,
                                       &outputs[0]);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(self->dims, opscope__sizes(self), OPSCOPE_BOOL, &outputs[1]);
    }
    if (status == OPSCOPE_OK) {
        struct draw draw = {opscope__stretch_take((uint64_t)self->count),
                            (uint64_t)(p * 0x1p53),
                            p < 1 ? 1 / (1 - p) : 0,
                            input->data,
                            outputs[0]->data,
                            (uint8_t *)outputs[1]->data};
        opscope__parallel(self->count, OPSCOPE__GRAIN / 4,
                          self->dtype == OPSCOPE_FLOAT32 ? part_float32 : part_float64, &draw);
    }
    opscope_tensor_release(input);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    double p = backward->arguments[1].as.real;
    gradients[0] = opscope__keep(
        opscope__f(&f, "native_dropout_backward", opscope__T(backward->gradients[0]),
                   opscope__T(backward->saved[0]), opscope__R(p < 1 ? 1 / (1 - p) : 0)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(native_dropout) = {
    .schema = "native_dropout(Tensor input, float p) -> (Tensor result, Tensor mask)",
    .doc = "Each element is zero with probability p, and divided by 1 - p otherwise; the second "
           "output is true where an element was kept. Repeatable after manual_seed, with any "
           "number of threads.",
    .samples = "t(3, 4), 0.0\n"
               "t(3, 4), 1.0",
    .forward = forward,
    .backward = backward,
    .saves_outputs = 2,
};
