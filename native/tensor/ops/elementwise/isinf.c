/* tensor/ops/elementwise/isinf.c -- core::isinf: tests for infinite elements. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__UNARY(isinf_float32, uint8_t, float, a - a != 0 && a == a)
OPSCOPE__UNARY(isinf_float64, uint8_t, double, a - a != 0 && a == a)
OPSCOPE__UNARY(isinf_int32, uint8_t, int32_t, a - a)
OPSCOPE__UNARY(isinf_int64, uint8_t, int64_t, a - a)
OPSCOPE__UNARY(isinf_uint8, uint8_t, uint8_t, a - a)

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__ALL_LOOPS(isinf)}, .cost = 1, .gives_bool = true)

const struct opscope__operator_spec OPSCOPE__OPERATOR(isinf) = {
    .schema = "isinf(Tensor self) -> Tensor",
    .doc = "True where an element is infinite, as bools.",
    .samples = "t(3, 4)\n"
               "t(3, 4) + float('inf')\n"
               "t(3, 4) * float('nan')\n"
               "i(3)",
    .forward = forward,
    .elementwise = &elementwise,
};
