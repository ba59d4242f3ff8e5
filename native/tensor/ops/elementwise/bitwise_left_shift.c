/* tensor/ops/elementwise/bitwise_left_shift.c -- core::bitwise_left_shift: shifts bits left. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY(bitwise_left_shift_int32, int32_t, int32_t, (uint32_t)b < 32 ? a << b : 0)
OPSCOPE__BINARY(bitwise_left_shift_int64, int64_t, int64_t, (uint64_t)b < 64 ? a << b : 0)
OPSCOPE__BINARY(bitwise_left_shift_uint8, uint8_t, uint8_t, b < 8 ? a << b : 0)

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__INTEGER_LOOPS(bitwise_left_shift)}, .cost = 1)

const struct opscope__operator_spec OPSCOPE__OPERATOR(bitwise_left_shift) = {
    .schema = "bitwise_left_shift(Tensor self, Tensor other) -> Tensor",
    .doc = "Shifts the bits of integers left and fills with zeros; 0 if other is negative or at "
           "least the number of bits. Sizes broadcast, dtypes promote; either argument may be a "
           "number.",
    .samples = "index(99, 3, 4), index(6, 4)\n"
               "index(9, 3), 1",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
    .takes_numbers = true,
};
