/* tensor/ops/elementwise/trunc.c -- core::trunc: removes fractions. */
#include "tensor/ops/elementwise/rounding.h"

OPSCOPE__ROUNDING(trunc, trunc)

const struct opscope__operator_spec OPSCOPE__OPERATOR(trunc) = {
    .schema = "trunc(Tensor self) -> Tensor",
    .doc = "Each element without its fraction; integers stay unchanged. Its gradient is zero.",
    .samples = "t(3, 4) * 3\n"
               "i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = opscope__zero_backward,
    .has_inplace = true,
};
