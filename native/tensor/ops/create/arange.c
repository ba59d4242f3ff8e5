/* tensor/ops/create/arange.c -- core::arange: evenly spaced numbers with a given step. */
#include <math.h>

#include "tensor/core/operator.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    /* arange(end) counts from 0. */
    bool is_lone = arguments[1].kind == OPSCOPE_ARGUMENT_NONE;
    const opscope_argument bounds[] = {is_lone ? opscope__I(0) : arguments[0],
                                       is_lone ? arguments[0] : arguments[1], arguments[2]};
    bool is_real = false;
    for (int i = 0; i < 3; i++) {
        is_real |= bounds[i].kind == OPSCOPE_ARGUMENT_FLOAT;
    }
    int64_t dtype = arguments[3].kind == OPSCOPE_ARGUMENT_NONE
                        ? is_real ? OPSCOPE_FLOAT32 : OPSCOPE_INT64
                        : arguments[3].as.integer;
    if (dtype < 0 || dtype >= OPSCOPE_DTYPE_COUNT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: dtype %lld is unknown",
                                   opscope__call_name(call), (long long)dtype);
    }
    double ends[3];
    int64_t whole[3];
    for (int i = 0; i < 3; i++) {
        opscope__number_as(&bounds[i], OPSCOPE_FLOAT64, &ends[i]);
        opscope__number_as(&bounds[i], OPSCOPE_INT64, &whole[i]);
    }
    double length = ceil((ends[1] - ends[0]) / ends[2]);
    if (ends[2] == 0 || !(length < 0x1p53)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE,
            "%s: from %g to %g by %g: the step must not be 0 and the ends must "
            "be finite",
            opscope__call_name(call), ends[0], ends[1], ends[2]);
    }
    int64_t count = length > 0 ? (int64_t)length : 0;
    opscope_tensor *made;
    int status = opscope__tensor_empty(1, &count, is_real ? OPSCOPE_FLOAT64 : OPSCOPE_INT64, &made);
    if (status != OPSCOPE_OK) {
        return status;
    }
    for (int64_t i = 0; i < count; i++) {
        if (is_real) {
            ((double *)(void *)made->data)[i] = ends[0] + (double)i * ends[2];
        } else {
            ((int64_t *)(void *)made->data)[i] = whole[0] + i * whole[2];
        }
    }
    if (made->dtype == dtype) {
        outputs[0] = made;
        return OPSCOPE_OK;
    }
    status = opscope__convert(made, (opscope_dtype)dtype, outputs);
    opscope_tensor_release(made);
    return status;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(arange) = {
    .schema =
        "arange(Scalar start, Scalar? end=None, Scalar step=1, *, dtype? dtype=None) -> Tensor",
    .doc = "start, start + step, ... up to but excluding end; from 0 if only end is given. "
           "int64 if all three are integers, else float32, unless dtype is given.",
    .samples = "5\n"
               "0, 5\n"
               "1, 2, 0.25",
    .forward = forward,
};
