/* tensor/ops/elementwise/logical_and.c -- core::logical_and: logical and. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY_TRUTHS(logical_and, (a != 0) & (b != 0))

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__ALL_LOOPS(logical_and)}, .cost = 1, .gives_bool = true)

const struct opscope__operator_spec OPSCOPE__OPERATOR(logical_and) = {
    .schema = "logical_and(Tensor self, Tensor other) -> Tensor",
    .doc = "True where both elements are not zero, as bools. Sizes broadcast, dtypes promote as "
           "in PyTorch; either argument may be a number.",
    .samples = "t(3, 4), t(4)\n"
               "i(3), i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
    .takes_numbers = true,
};
