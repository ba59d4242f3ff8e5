/* tensor/ops/elementwise/logical_xor.c -- core::logical_xor: logical exclusive or. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY_TRUTHS(logical_xor, (a != 0) ^ (b != 0))

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__ALL_LOOPS(logical_xor)}, .cost = 1, .gives_bool = true)

const struct opscope__operator_spec OPSCOPE__OPERATOR(logical_xor) = {
    .schema = "logical_xor(Tensor self, Tensor other) -> Tensor",
    .doc = "True where exactly one element is not zero, as bools. Sizes broadcast, dtypes "
           "promote as in PyTorch; either argument may be a number.",
    .samples = "t(3, 4), t(4)\n"
               "i(3), i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
    .takes_numbers = true,
};
