/* tensor/ops/elementwise/bitwise_not.c -- core::bitwise_not: inverts every bit. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__UNARY_INTEGERS(bitwise_not, ~a)
OPSCOPE__UNARY(bitwise_not_bool, uint8_t, uint8_t, a == 0)

OPSCOPE__FORWARD(1, 0,
                 .loops = {OPSCOPE__INTEGER_LOOPS(bitwise_not), [OPSCOPE_BOOL] = bitwise_not_bool},
                 .cost = 1)

const struct opscope__operator_spec OPSCOPE__OPERATOR(bitwise_not) = {
    .schema = "bitwise_not(Tensor self) -> Tensor",
    .doc = "Inverts the bits of integers; for bools, logical not. Not for floats.",
    .samples = "index(9, 3, 4)\n"
               "b(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
};
