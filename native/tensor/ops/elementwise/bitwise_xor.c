/* tensor/ops/elementwise/bitwise_xor.c -- core::bitwise_xor: bitwise exclusive or. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY_INTEGERS(bitwise_xor, a ^ b)

OPSCOPE__FORWARD(2, 0,
                 .loops = {OPSCOPE__INTEGER_LOOPS(bitwise_xor), [OPSCOPE_BOOL] = bitwise_xor_uint8},
                 .cost = 1)

const struct opscope__operator_spec OPSCOPE__OPERATOR(bitwise_xor) = {
    .schema = "bitwise_xor(Tensor self, Tensor other) -> Tensor",
    .doc = "The bitwise exclusive or of integers, or the logical one of bools. Sizes broadcast, "
           "dtypes promote; either argument may be a number. Not for floats.",
    .samples = "index(9, 3, 4), index(9, 4)\n"
               "b(3), b(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
    .takes_numbers = true,
};
