/* tensor/ops/cumsum.c -- core::cumsum: sums so far. */
#include "tensor/ops/rows.h"

#define LOOP(name, type)                                                                             \
    static void name(char *out, const char *const *inputs, int64_t begin, int64_t end, int64_t width)  \
    {                                                                                                  \
        for (int64_t i = begin; i < end; i++) {                                                        \
            const type *x = (const type *)(const void *)inputs[0] + i * width;                         \
            type *y = (type *)(void *)out + i * width, sum = 0;                                        \
            for (int64_t j = 0; j < width; j++) {                                                      \
                sum += x[j];                                                                           \
                y[j] = sum;                                                                            \
            }                                                                                          \
        }                                                                                              \
    }

LOOP(cumsum_float32, float)
LOOP(cumsum_float64, double)
LOOP(cumsum_int64, int64_t)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const opscope__row_loop loops[OPSCOPE_DTYPE_COUNT] = {
        [OPSCOPE_FLOAT32] = cumsum_float32,
        [OPSCOPE_FLOAT64] = cumsum_float64,
        [OPSCOPE_INT64] = cumsum_int64};
    opscope_tensor *self = arguments[0].as.tensor, *converted = NULL;
    int status = OPSCOPE_OK;
    if (!opscope_dtype_is_floating((opscope_dtype)self->dtype) && self->dtype != OPSCOPE_INT64) {
        status = opscope__convert(self, OPSCOPE_INT64, &converted);
        self = converted;
    }
    if (status == OPSCOPE_OK) {
        status = opscope__along_argument(call, loops, self, NULL, &arguments[1], 4, outputs);
    }
    opscope_tensor_release(converted);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_argument dim = backward->arguments[1];
    opscope_tensor *turned = opscope__f(&f, "slice", opscope__T(grad), dim, opscope__N, opscope__N,
                                        opscope__I(-1));
    opscope_tensor *sums = opscope__f(&f, "cumsum", opscope__T(turned), dim);
    gradients[0] = opscope__keep(opscope__f(&f, "slice", opscope__T(sums), dim, opscope__N,
                                            opscope__N, opscope__I(-1)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(cumsum) = {
    .schema = "cumsum(Tensor self, int dim) -> Tensor",
    .doc = "The sum of the elements up to and with each one along dim. Integers and bools sum in "
           "int64.",
    .samples = "t(3, 4), 1\n" "t(3, 4), 0",
    .forward = forward,
    .backward = backward,
};
