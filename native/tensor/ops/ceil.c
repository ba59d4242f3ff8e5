/* tensor/ops/ceil.c -- core::ceil: the whole number above. */
#include "tensor/formula.h"
#include "tensor/ops/loops.h"

OPSCOPE__UNARY(ceil_float32, float, float, ceilf(a))
OPSCOPE__UNARY(ceil_float64, double, double, ceil(a))
OPSCOPE__UNARY(ceil_int32, int32_t, int32_t, a)
OPSCOPE__UNARY(ceil_int64, int64_t, int64_t, a)
OPSCOPE__UNARY(ceil_uint8, uint8_t, uint8_t, a)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__NUMBER_LOOPS(ceil)}, .cost = 1};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f(&f, "fill", opscope__T(grad), opscope__I(0)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(ceil) = {
    .schema = "ceil(Tensor self) -> Tensor",
    .doc = "The smallest whole number not below each element; integers as they are. Its gradient "
           "is zero.",
    .samples = "t(3, 4) * 3\n" "i(3)",
    .forward = forward,
    .backward = backward,
    .has_inplace = true,
};
