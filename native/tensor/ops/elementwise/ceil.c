/* tensor/ops/ceil.c -- core::ceil: the whole number above. */
#include "tensor/ops/rounding.h"

OPSCOPE__ROUNDING(ceil, ceil)

const struct opscope__operator_spec OPSCOPE__OPERATOR(ceil) = {
    .schema = "ceil(Tensor self) -> Tensor",
    .doc = "The smallest whole number not below each element; integers as they are. Its gradient "
           "is zero.",
    .samples = "t(3, 4) * 3\n"
               "i(3)",
    .forward = forward,
    .backward = opscope__zero_backward,
    .has_inplace = true,
};
