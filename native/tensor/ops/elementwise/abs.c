/* tensor/ops/elementwise/abs.c -- core::abs: the absolute value. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__UNARY(abs_float32, float, float, fabsf(a))
OPSCOPE__UNARY(abs_float64, double, double, fabs(a))
OPSCOPE__UNARY(abs_int32, int32_t, int32_t, a < 0 ? -a : a)
OPSCOPE__UNARY(abs_int64, int64_t, int64_t, a < 0 ? -a : a)
OPSCOPE__UNARY(abs_uint8, uint8_t, uint8_t, a)

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__NUMBER_LOOPS(abs)}, .cost = 1)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *sign = opscope__f1(&f, "sign", backward->inputs[0]);
    return opscope__formula_chain(&f, backward, sign, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(abs) = {
    .schema = "abs(Tensor self) -> Tensor",
    .doc = "The absolute value of each element. Not for bool.",
    .samples = "t(3, 4)\n"
               "i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
