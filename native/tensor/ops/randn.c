/* tensor/ops/randn.c -- core::randn: normal numbers. */
#include "tensor/operator.h"
#include "tensor/random.h"
#include "tensor/tensor.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    int64_t dtype = arguments[1].kind == OPSCOPE_ARGUMENT_NONE ? OPSCOPE_FLOAT32
                                                                : arguments[1].as.integer;
    if (dtype != OPSCOPE_FLOAT32 && dtype != OPSCOPE_FLOAT64) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: float32 or float64 expected",
                                   opscope__call_name(call));
    }
    int status = opscope__tensor_empty((int)arguments[0].count, arguments[0].as.integers,
                                       (opscope_dtype)dtype, outputs);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__stretch state = opscope__stretch_take((uint64_t)outputs[0]->count);
    for (int64_t i = 0; i < outputs[0]->count; i++) {
        double value = opscope__draw_normal(&state);
        if (dtype == OPSCOPE_FLOAT32) {
            float narrow = (float)value;
            ((float *)(void *)outputs[0]->data)[i] = narrow;
        } else {
            ((double *)(void *)outputs[0]->data)[i] = value;
        }
    }
    return OPSCOPE_OK;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(randn) = {
    .schema = "randn(int[] size, *, dtype? dtype=None) -> Tensor",
    .doc = "Numbers drawn from the normal distribution of mean 0 and variance 1 (Box and Muller "
           "1958). float32 unless dtype says float64. Repeatable after opscope_tensor_seed.",
    .samples = "[3, 4]",
    .forward = forward,
};
