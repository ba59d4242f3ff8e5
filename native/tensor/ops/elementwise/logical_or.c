/* tensor/ops/elementwise/logical_or.c -- core::logical_or: logical or. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY_TRUTHS(logical_or, (a != 0) | (b != 0))

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__ALL_LOOPS(logical_or)}, .cost = 1, .gives_bool = true)

const struct opscope__operator_spec OPSCOPE__OPERATOR(logical_or) = {
    .schema = "logical_or(Tensor self, Tensor other) -> Tensor",
    .doc = "True where at least one element is not zero, as bools. Sizes broadcast, dtypes "
           "promote as in PyTorch; either argument may be a number.",
    .samples = "t(3, 4), t(4)\n"
               "i(3), i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
    .takes_numbers = true,
};
