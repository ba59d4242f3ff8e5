/* tensor/ops/round.c -- core::round: the nearest whole number. */
#include "tensor/formula.h"
#include "tensor/ops/loops.h"

OPSCOPE__UNARY(round_float32, float, float, rintf(a))
OPSCOPE__UNARY(round_float64, double, double, rint(a))
OPSCOPE__UNARY(round_int32, int32_t, int32_t, a)
OPSCOPE__UNARY(round_int64, int64_t, int64_t, a)
OPSCOPE__UNARY(round_uint8, uint8_t, uint8_t, a)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__NUMBER_LOOPS(round)}, .cost = 1};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f(&f, "fill", opscope__T(grad), opscope__I(0)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(round) = {
    .schema = "round(Tensor self) -> Tensor",
    .doc = "The whole number nearest to each element, the even one where two are; integers as "
           "they are. Its gradient is zero.",
    .samples = "t(3, 4) * 3\n" "i(3)",
    .forward = forward,
    .backward = backward,
    .has_inplace = true,
};
