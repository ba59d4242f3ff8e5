/* tensor/ops/elementwise/gt.c -- core::gt: self > other. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY_TRUTHS(gt, a > b)

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__ALL_LOOPS(gt)}, .cost = 1, .gives_bool = true)

const struct opscope__operator_spec OPSCOPE__OPERATOR(gt) = {
    .schema = "gt(Tensor self, Tensor other) -> Tensor",
    .doc = "True where self is greater than other, as bools. Sizes broadcast, dtypes promote as "
           "in PyTorch; either argument may be a number.",
    .samples = "t(3, 4), t(4)\n"
               "i(3), i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
    .takes_numbers = true,
};
