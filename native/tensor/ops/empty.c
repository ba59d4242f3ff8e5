/* tensor/ops/empty.c -- core::empty: memory as it comes. */
#include "tensor/convert.h"
#include "tensor/formula.h"
#include "tensor/operator.h"
#include "tensor/tensor.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    int64_t dtype = arguments[1].kind == OPSCOPE_ARGUMENT_NONE ? OPSCOPE_FLOAT32 : arguments[1].as.integer;
    if (dtype < 0 || dtype >= OPSCOPE_DTYPE_COUNT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: dtype %lld is unknown",
                                   opscope__call_name(call), (long long)dtype);
    }
    return opscope__tensor_empty((int)arguments[0].count, arguments[0].as.integers,
                                 (opscope_dtype)dtype, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(empty) = {
    .schema = "empty(int[] size, *, dtype? dtype=None) -> Tensor",
    .doc = "A new tensor of those sizes whose elements are whatever the memory held; float32 "
           "unless dtype says otherwise.",
    .samples = "[3, 4]",
    .forward = forward,
};
