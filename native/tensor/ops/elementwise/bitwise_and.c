/* tensor/ops/elementwise/bitwise_and.c -- core::bitwise_and: bitwise and. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY_INTEGERS(bitwise_and, (a) & (b))

OPSCOPE__FORWARD(2, 0,
                 .loops = {OPSCOPE__INTEGER_LOOPS(bitwise_and), [OPSCOPE_BOOL] = bitwise_and_uint8},
                 .cost = 1)

const struct opscope__operator_spec OPSCOPE__OPERATOR(bitwise_and) = {
    .schema = "bitwise_and(Tensor self, Tensor other) -> Tensor",
    .doc = "The bitwise and of integers, or the logical and of bools. Sizes broadcast, dtypes "
           "promote; either argument may be a number. Not for floats.",
    .samples = "index(9, 3, 4), index(9, 4)\n"
               "b(3), b(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
    .takes_numbers = true,
};
