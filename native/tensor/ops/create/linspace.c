/* tensor/ops/create/linspace.c -- core::linspace: a given number of evenly spaced numbers. */
#include "tensor/core/operator.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    int64_t dtype =
        arguments[3].kind == OPSCOPE_ARGUMENT_NONE ? OPSCOPE_FLOAT32 : arguments[3].as.integer;
    if (dtype < 0 || dtype >= OPSCOPE_DTYPE_COUNT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: dtype %lld is unknown",
                                   opscope__call_name(call), (long long)dtype);
    }
    double start, end;
    opscope__number_as(&arguments[0], OPSCOPE_FLOAT64, &start);
    opscope__number_as(&arguments[1], OPSCOPE_FLOAT64, &end);
    int64_t count = arguments[2].as.integer;
    opscope_tensor *reals;
    int status = opscope__tensor_empty(1, &count, OPSCOPE_FLOAT64, &reals);
    if (status != OPSCOPE_OK) {
        return status;
    }
    double *into = (double *)(void *)reals->data;
    double step = count > 1 ? (end - start) / (double)(count - 1) : 0;
    for (int64_t i = 0; i < count; i++) {
        /* Counts from the nearer end, so that both ends are exact. */
        into[i] = i < count / 2 || count == 1 ? start + step * (double)i
                                              : end - step * (double)(count - 1 - i);
    }
    status = opscope__convert(reals, (opscope_dtype)dtype, outputs);
    opscope_tensor_release(reals);
    return status;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(linspace) = {
    .schema = "linspace(Scalar start, Scalar end, int steps, *, dtype? dtype=None) -> Tensor",
    .doc = "steps evenly spaced numbers from start to end, both included; float32 unless dtype "
           "is given.",
    .samples = "0, 1, 5",
    .forward = forward,
};
