/* tensor/ops/zeros.c -- core::zeros: 0 everywhere. */
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
    int status = opscope__tensor_empty((int)arguments[0].count, arguments[0].as.integers,
                                       (opscope_dtype)dtype, outputs);
    if (status == OPSCOPE_OK) {
        opscope__fill(outputs[0], &opscope__I(0));
    }
    return status;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(zeros) = {
    .schema = "zeros(int[] size, *, dtype? dtype=None) -> Tensor",
    .doc = "A new tensor of those sizes, 0 everywhere; float32 unless dtype says otherwise.",
    .samples = "[3, 4]",
    .forward = forward,
};
