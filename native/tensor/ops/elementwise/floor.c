/* tensor/ops/elementwise/floor.c -- core::floor: rounds down. */
#include "tensor/ops/elementwise/rounding.h"

OPSCOPE__ROUNDING(floor, floor)

const struct opscope__operator_spec OPSCOPE__OPERATOR(floor) = {
    .schema = "floor(Tensor self) -> Tensor",
    .doc = "The largest whole number not above each element; integers stay unchanged. Its "
           "gradient is zero.",
    .samples = "t(3, 4) * 3\n"
               "i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = opscope__zero_backward,
    .has_inplace = true,
};
