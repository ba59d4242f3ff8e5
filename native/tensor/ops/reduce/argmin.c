/* tensor/ops/reduce/argmin.c -- core::argmin: the index of the smallest element. */
#include "tensor/ops/reduce/extremes.h"

OPSCOPE__SEARCHES(argmin, <, INFINITY, INT32_MAX, INT64_MAX, UINT8_MAX)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__search_forward(call, argmin, arguments, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(argmin) = {
    .schema = "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    .doc = "The index (int64) of the smallest element along dim, or of all elements in row-major "
           "order; the first of equal ones. NaN counts as the smallest.",
    .samples = "t(3, 4)\n"
               "t(3, 4), 1\n"
               "t(3, 4), 0, True",
    .forward = forward,
};
