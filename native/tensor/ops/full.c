/* tensor/ops/full.c -- core::full: one number everywhere. */
#include "tensor/convert.h"
#include "tensor/formula.h"
#include "tensor/operator.h"
#include "tensor/tensor.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_dtype own = arguments[1].kind == OPSCOPE_ARGUMENT_FLOAT  ? OPSCOPE_FLOAT32
                        : arguments[1].kind == OPSCOPE_ARGUMENT_BOOL ? OPSCOPE_BOOL
                                                                     : OPSCOPE_INT64;
    int64_t dtype = arguments[2].kind == OPSCOPE_ARGUMENT_NONE ? (int64_t)own : arguments[2].as.integer;
    if (dtype < 0 || dtype >= OPSCOPE_DTYPE_COUNT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: dtype %lld is unknown",
                                   opscope__call_name(call), (long long)dtype);
    }
    int status = opscope__tensor_empty((int)arguments[0].count, arguments[0].as.integers,
                                       (opscope_dtype)dtype, outputs);
    if (status == OPSCOPE_OK) {
        opscope__fill(outputs[0], &arguments[1]);
    }
    return status;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(full) = {
    .schema = "full(int[] size, Scalar fill_value, *, dtype? dtype=None) -> Tensor",
    .doc = "A new tensor of those sizes with one number everywhere; its dtype is that of the "
           "number (int64, float32, bool) unless dtype says otherwise.",
    .samples = "[3, 4], 2.5",
    .forward = forward,
};
