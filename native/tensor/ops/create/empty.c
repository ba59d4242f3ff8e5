/* tensor/ops/empty.c -- core::empty: memory as it comes. */
#include "tensor/ops/filled.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__unfilled(call, &arguments[0], &arguments[1], OPSCOPE_FLOAT32, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(empty) = {
    .schema = "empty(int[] size, *, dtype? dtype=None) -> Tensor",
    .doc = "A new tensor of those sizes whose elements are whatever the memory held; float32 "
           "unless dtype says otherwise.",
    .samples = "[3, 4]",
    .forward = forward,
};
