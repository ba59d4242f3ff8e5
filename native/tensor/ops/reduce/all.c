/* tensor/ops/reduce/all.c -- core::all: tests whether every element is true. */
#include "tensor/ops/reduce/any_all.h"

OPSCOPE__ANY_ALL(all, &, 1)

const struct opscope__operator_spec OPSCOPE__OPERATOR(all) = {
    .schema = "all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    .doc = "True if every element is not zero, over the dimensions in dim (all if it is absent "
           "or empty), as bools; true for no elements. NaN is not zero.",
    .samples = "b(3, 4)\n"
               "i(3, 4), [1], True\n"
               "t(3, 4), 0\n"
               "t(0, 3)",
    .forward = forward,
};
