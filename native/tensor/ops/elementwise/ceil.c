/* tensor/ops/elementwise/ceil.c -- core::ceil: rounds up. */
#include "tensor/ops/elementwise/rounding.h"

OPSCOPE__ROUNDING(ceil, ceil)

const struct opscope__operator_spec OPSCOPE__OPERATOR(ceil) = {
    .schema = "ceil(Tensor self) -> Tensor",
    .doc = "The smallest whole number not below each element; integers stay unchanged. Its "
           "gradient is zero.",
    .samples = "t(3, 4) * 3\n"
               "i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = opscope__zero_backward,
    .has_inplace = true,
};
