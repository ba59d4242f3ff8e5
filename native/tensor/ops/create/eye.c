/* tensor/ops/create/eye.c -- core::eye: the identity matrix. */
#include "tensor/core/operator.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    int64_t dtype =
        arguments[2].kind == OPSCOPE_ARGUMENT_NONE ? OPSCOPE_FLOAT32 : arguments[2].as.integer;
    if (dtype < 0 || dtype >= OPSCOPE_DTYPE_COUNT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: dtype %lld is unknown",
                                   opscope__call_name(call), (long long)dtype);
    }
    int64_t rows = arguments[0].as.integer;
    int64_t sizes[] = {rows,
                       arguments[1].kind == OPSCOPE_ARGUMENT_NONE ? rows : arguments[1].as.integer};
    int status = opscope__tensor_empty(2, sizes, (opscope_dtype)dtype, outputs);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__fill(outputs[0], &opscope__I(0));
    opscope_tensor *diagonal;
    int64_t length = sizes[0] < sizes[1] ? sizes[0] : sizes[1], stride = sizes[1] + 1;
    status = opscope__tensor_view(outputs[0], 1, &length, &stride, 0, &diagonal);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__fill(diagonal, &opscope__I(1));
    opscope_tensor_release(diagonal);
    return OPSCOPE_OK;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(eye) = {
    .schema = "eye(int n, int? m=None, *, dtype? dtype=None) -> Tensor",
    .doc = "A matrix of n rows and m columns (default n) with ones on its diagonal and zeros "
           "elsewhere.",
    .samples = "3\n"
               "3, 4",
    .forward = forward,
};
