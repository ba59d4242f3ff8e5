/* tensor/ops/all.c -- core::all: whether every element is true. */
#include "tensor/ops/truths.h"

OPSCOPE__TRUTHS(all, &, 1)

const struct opscope__operator_spec OPSCOPE__OPERATOR(all) = {
    .schema = "all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    .doc =
        "Whether every element is not zero over the dimensions in dim (all where it is absent or "
        "empty), as bools; true of none. NaN is not zero.",
    .samples = "b(3, 4)\n"
               "i(3, 4), [1], True\n"
               "t(3, 4), 0\n"
               "t(0, 3)",
    .forward = forward,
};
