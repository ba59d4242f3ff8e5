/* tensor/ops/nn/native_dropout_backward.c -- core::native_dropout_backward: the gradient through
 * dropout. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

/* Operands: the mask, the gradient, the scale. */
#define SCALE(name, type)                                                                          \
    static void name(char *const *data, const int64_t *strides, int64_t count, void *user)         \
    {                                                                                              \
        (void)user;                                                                                \
        const type scale = *(const type *)(const void *)data[3];                                   \
        if (strides[0] == sizeof(type) && strides[1] == 1 && strides[2] == sizeof(type)) {         \
            type *out = (type *)(void *)data[0];                                                   \
            const uint8_t *mask = (const uint8_t *)data[1];                                        \
            const type *grad = (const type *)(const void *)data[2];                                \
            OPSCOPE__INDEPENDENT                                                                   \
            for (int64_t i = 0; i < count; i++) {                                                  \
                out[i] = mask[i] != 0 ? grad[i] * scale : 0;                                       \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            OPSCOPE__AT(type, 0) =                                                                 \
                OPSCOPE__AT(uint8_t, 1) != 0 ? OPSCOPE__AT(type, 2) * scale : 0;                   \
        }                                                                                          \
    }

SCALE(scale_float32, float)
SCALE(scale_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(scale)}, .cost = 2, .apart = 1};
    const opscope_argument operands[] = {arguments[1], arguments[0], arguments[2]};
    return opscope__elementwise(call, &spec, operands, 3, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    gradients[0] =
        opscope__keep(opscope__f(&f, "native_dropout_backward", opscope__T(backward->gradients[0]),
                                 backward->arguments[1], backward->arguments[2]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(native_dropout_backward) = {
    .schema = "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    .doc = "grad_output times scale where mask is true, else 0: the gradient through "
           "native_dropout.",
    .samples = "t(3, 4), b(3, 4), 2.0",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 2,
};
