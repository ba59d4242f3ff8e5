/* tensor/ops/abs.c -- core::abs: the absolute value. */
#include "tensor/formula.h"
#include "tensor/ops/loops.h"

OPSCOPE__UNARY(abs_float32, float, float, fabsf(a))
OPSCOPE__UNARY(abs_float64, double, double, fabs(a))
OPSCOPE__UNARY(abs_int32, int32_t, int32_t, a < 0 ? -a : a)
OPSCOPE__UNARY(abs_int64, int64_t, int64_t, a < 0 ? -a : a)
OPSCOPE__UNARY(abs_uint8, uint8_t, uint8_t, a)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {.loops = {OPSCOPE__NUMBER_LOOPS(abs)},
                                                     .cost = 1};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *sign = opscope__f1(&f, "sign", backward->inputs[0]);
    gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, sign));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(abs) = {
    .schema = "abs(Tensor self) -> Tensor",
    .doc = "The absolute value of each element. Not for bool.",
    .samples = "t(3, 4)\n"
               "i(3)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
