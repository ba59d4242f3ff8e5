/* tensor/ops/elementwise/logical_not.c -- core::logical_not: logical not. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__UNARY_TRUTHS(logical_not, a == 0)

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__ALL_LOOPS(logical_not)}, .cost = 1, .gives_bool = true)

const struct opscope__operator_spec OPSCOPE__OPERATOR(logical_not) = {
    .schema = "logical_not(Tensor self) -> Tensor",
    .doc = "True where an element is zero, as bools.",
    .samples = "t(3, 4)\n"
               "b(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
};
