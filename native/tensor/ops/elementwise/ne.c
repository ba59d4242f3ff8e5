/* tensor/ops/elementwise/ne.c -- core::ne: self != other. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY_TRUTHS(ne, a != b)

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__ALL_LOOPS(ne)}, .cost = 1, .gives_bool = true)

const struct opscope__operator_spec OPSCOPE__OPERATOR(ne) = {
    .schema = "ne(Tensor self, Tensor other) -> Tensor",
    .doc = "True where self differs from other, as bools. Sizes broadcast, dtypes promote as in "
           "PyTorch; either argument may be a number.",
    .samples = "t(3, 4), t(4)\n"
               "i(3), i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
    .takes_numbers = true,
};
