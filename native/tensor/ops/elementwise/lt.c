/* tensor/ops/elementwise/lt.c -- core::lt: self < other. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY_TRUTHS(lt, a < b)

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__ALL_LOOPS(lt)}, .cost = 1, .gives_bool = true)

const struct opscope__operator_spec OPSCOPE__OPERATOR(lt) = {
    .schema = "lt(Tensor self, Tensor other) -> Tensor",
    .doc = "True where self is less than other, as bools. Sizes broadcast, dtypes promote as in "
           "PyTorch; either argument may be a number.",
    .samples = "t(3, 4), t(4)\n"
               "i(3), i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
    .takes_numbers = true,
};
