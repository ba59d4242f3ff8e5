/* tensor/ops/elementwise/round.c -- core::round: rounds to the nearest whole number. */
#include "tensor/ops/elementwise/rounding.h"

OPSCOPE__ROUNDING(round, rint)

const struct opscope__operator_spec OPSCOPE__OPERATOR(round) = {
    .schema = "round(Tensor self) -> Tensor",
    .doc = "The whole number nearest to each element, and the even one of two equally near; "
           "integers stay unchanged. Its gradient is zero.",
    .samples = "t(3, 4) * 3\n"
               "i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = opscope__zero_backward,
    .has_inplace = true,
};
