/* tensor/ops/trunc.c -- core::trunc: fractions dropped. */
#include "tensor/formula.h"
#include "tensor/ops/loops.h"

OPSCOPE__UNARY(trunc_float32, float, float, truncf(a))
OPSCOPE__UNARY(trunc_float64, double, double, trunc(a))
OPSCOPE__UNARY(trunc_int32, int32_t, int32_t, a)
OPSCOPE__UNARY(trunc_int64, int64_t, int64_t, a)
OPSCOPE__UNARY(trunc_uint8, uint8_t, uint8_t, a)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__NUMBER_LOOPS(trunc)}, .cost = 1};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f(&f, "fill", opscope__T(grad), opscope__I(0)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(trunc) = {
    .schema = "trunc(Tensor self) -> Tensor",
    .doc = "Each element without its fraction; integers as they are. Its gradient is zero.",
    .samples = "t(3, 4) * 3\n" "i(3)",
    .forward = forward,
    .backward = backward,
    .has_inplace = true,
};
