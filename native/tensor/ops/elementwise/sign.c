/* tensor/ops/sign.c -- core::sign: minus one, zero or one. */
#include "tensor/formula.h"
#include "tensor/ops/loops.h"

OPSCOPE__UNARY(sign_float32, float, float, (a > 0) - (a < 0))
OPSCOPE__UNARY(sign_float64, double, double, (a > 0) - (a < 0))
OPSCOPE__UNARY(sign_int32, int32_t, int32_t, (a > 0) - (a < 0))
OPSCOPE__UNARY(sign_int64, int64_t, int64_t, (a > 0) - (a < 0))
OPSCOPE__UNARY(sign_uint8, uint8_t, uint8_t, a > 0) /* and bools: themselves */

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {.loops = {OPSCOPE__ALL_LOOPS(sign)},
                                                     .cost = 1};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(sign) = {
    .schema = "sign(Tensor self) -> Tensor",
    .doc = "-1, 0 or 1 by the sign of each element; 0 for NaN; a bool itself.",
    .samples = "t(3, 4)\n"
               "i(3)\n"
               "b(3)",
    .forward = forward,
    .backward = opscope__zero_backward,
    .has_inplace = true,
};
