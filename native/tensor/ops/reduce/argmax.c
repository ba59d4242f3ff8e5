/* tensor/ops/reduce/argmax.c -- core::argmax: the index of the largest element. */
#include "tensor/ops/reduce/extremes.h"

OPSCOPE__SEARCHES(argmax, >, -INFINITY, INT32_MIN, INT64_MIN, 0)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__search_forward(call, argmax, arguments, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(argmax) = {
    .schema = "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    .doc = "The index (int64) of the largest element along dim, or of all elements in row-major "
           "order; the first of equal ones. NaN counts as the largest.",
    .samples = "t(3, 4)\n"
               "t(3, 4), 1\n"
               "t(3, 4), 0, True",
    .forward = forward,
};
