/* tensor/ops/elementwise/bitwise_right_shift.c -- core::bitwise_right_shift: shifts bits right. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY(bitwise_right_shift_int32, int32_t, int32_t, a >> ((uint32_t)b < 32 ? b : 31))
OPSCOPE__BINARY(bitwise_right_shift_int64, int64_t, int64_t, a >> ((uint64_t)b < 64 ? b : 63))
OPSCOPE__BINARY(bitwise_right_shift_uint8, uint8_t, uint8_t, b < 8 ? a >> b : 0)

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__INTEGER_LOOPS(bitwise_right_shift)}, .cost = 1)

const struct opscope__operator_spec OPSCOPE__OPERATOR(bitwise_right_shift) = {
    .schema = "bitwise_right_shift(Tensor self, Tensor other) -> Tensor",
    .doc = "Shifts the bits of integers right and fills with the sign; only sign bits if other "
           "is negative or at least the number of bits. Sizes broadcast, dtypes promote; either "
           "argument may be a number.",
    .samples = "index(99, 3, 4), index(6, 4)\n"
               "index(9, 3), 1",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
    .takes_numbers = true,
};
