/* tensor/ops/elementwise/isfinite.c -- core::isfinite: tests for finite elements. */
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__UNARY_TRUTHS(isfinite, a - a == 0)

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__ALL_LOOPS(isfinite)}, .cost = 1, .gives_bool = true)

const struct opscope__operator_spec OPSCOPE__OPERATOR(isfinite) = {
    .schema = "isfinite(Tensor self) -> Tensor",
    .doc = "True where an element is neither infinite nor NaN, as bools.",
    .samples = "t(3, 4)\n"
               "t(3, 4) + float('inf')\n"
               "t(3, 4) * float('nan')\n"
               "i(3)",
    .forward = forward,
    .elementwise = &elementwise,
};
