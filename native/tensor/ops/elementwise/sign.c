/* tensor/ops/elementwise/sign.c -- core::sign: minus one, zero or one. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__UNARY(sign_float32, float, float, (a > 0) - (a < 0))
OPSCOPE__UNARY(sign_float64, double, double, (a > 0) - (a < 0))
OPSCOPE__UNARY(sign_int32, int32_t, int32_t, (a > 0) - (a < 0))
OPSCOPE__UNARY(sign_int64, int64_t, int64_t, (a > 0) - (a < 0))
OPSCOPE__UNARY(sign_uint8, uint8_t, uint8_t, a > 0) /* also bools, which stay unchanged */

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__ALL_LOOPS(sign)}, .cost = 1)

const struct opscope__operator_spec OPSCOPE__OPERATOR(sign) = {
    .schema = "sign(Tensor self) -> Tensor",
    .doc = "-1, 0 or 1 for the sign of each element; 0 for NaN; bools stay unchanged.",
    .samples = "t(3, 4)\n"
               "i(3)\n"
               "b(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = opscope__zero_backward,
    .has_inplace = true,
};
