/* tensor/ops/elementwise/le.c -- core::le: self <= other. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY_TRUTHS(le, a <= b)

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__ALL_LOOPS(le)}, .cost = 1, .gives_bool = true)

const struct opscope__operator_spec OPSCOPE__OPERATOR(le) = {
    .schema = "le(Tensor self, Tensor other) -> Tensor",
    .doc = "True where self is at most other, as bools. Sizes broadcast, dtypes promote as in "
           "PyTorch; either argument may be a number.",
    .samples = "t(3, 4), t(4)\n"
               "i(3), i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
    .takes_numbers = true,
};
