/* tensor/ops/reduce/reduction.h -- the arguments that reductions share: the dimensions, and
 * keepdim. */
#ifndef OPSCOPE_TENSOR_OPS_REDUCE_REDUCTION_H
#define OPSCOPE_TENSOR_OPS_REDUCE_REDUCTION_H

#include "tensor/core/shape.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"
#include "tensor/ops/reduce/reduce_loops.h"

/* A table of reductions by dtype, from folds with names such as sum_float32; bools fold as uint8.
 * The initial accumulators: `start_bits` for floats, `start` for integers. */
#define OPSCOPE__FOLDS(name, start_bits, start)                                                    \
    {                                                                                              \
        [OPSCOPE_FLOAT32] = OPSCOPE__FOLDED(name##_float32, start_bits, 1),                        \
        [OPSCOPE_FLOAT64] = OPSCOPE__FOLDED(name##_float64, start_bits, 1),                        \
        [OPSCOPE_INT32] = OPSCOPE__FOLDED(name##_int32, start, 1),                                 \
        [OPSCOPE_INT64] = OPSCOPE__FOLDED(name##_int64, start, 1),                                 \
        [OPSCOPE_UINT8] = OPSCOPE__FOLDED(name##_uint8, start, 1),                                 \
        [OPSCOPE_BOOL] = OPSCOPE__FOLDED(name##_uint8, start, 1),                                  \
    }

/* Output dtypes of reductions that should not overflow: integers and bools give int64. */
static const opscope_dtype opscope__widened[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = OPSCOPE_FLOAT32, [OPSCOPE_FLOAT64] = OPSCOPE_FLOAT64,
    [OPSCOPE_INT32] = OPSCOPE_INT64,     [OPSCOPE_INT64] = OPSCOPE_INT64,
    [OPSCOPE_UINT8] = OPSCOPE_INT64,     [OPSCOPE_BOOL] = OPSCOPE_INT64,
};

/* The set of dimensions in a list argument (None: all). */
static inline int opscope__reduced_set(const struct opscope__call *call, const opscope_tensor *self,
                                       const opscope_argument *dim, uint32_t *out)
{
    bool all = dim->kind == OPSCOPE_ARGUMENT_NONE;
    return opscope__dim_set(opscope__call_name(call), all ? NULL : dim->as.integers,
                            all ? 0 : dim->count, self->dims, out);
}

/* `reductions` are by the dtype of the input; outputs have the dtype in `outputs_as`. `dtype` (may
 * be NULL, or None) converts the input first. */
static inline int opscope__reduce_arguments(const struct opscope__call *call,
                                            const struct opscope__reduction *reductions,
                                            const opscope_dtype *outputs_as,
                                            const opscope_argument *arguments,
                                            const opscope_argument *dtype, opscope_tensor **out)
{
    opscope_tensor *self = arguments[0].as.tensor, *converted = NULL;
    uint32_t set;
    int status = opscope__reduced_set(call, self, &arguments[1], &set);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (dtype != NULL && dtype->kind != OPSCOPE_ARGUMENT_NONE && dtype->as.integer != self->dtype) {
        if (dtype->as.integer < 0 || dtype->as.integer >= OPSCOPE_DTYPE_COUNT) {
            return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: dtype %lld is unknown",
                                       opscope__call_name(call), (long long)dtype->as.integer);
        }
        status = opscope__convert(self, (opscope_dtype)dtype->as.integer, &converted);
        if (status != OPSCOPE_OK) {
            return status;
        }
        self = converted;
    }
    if (reductions[self->dtype].rows == NULL) {
        status = opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: not defined for %s",
                                     opscope__call_name(call), opscope_dtype_name(self->dtype));
    } else {
        status = opscope__reduce(&reductions[self->dtype], self, set, arguments[2].as.integer != 0,
                                 outputs_as[self->dtype], out);
    }
    opscope_tensor_release(converted);
    if (status == OPSCOPE_OK && dtype != NULL && dtype->kind != OPSCOPE_ARGUMENT_NONE &&
        dtype->as.integer != (*out)->dtype) {
        converted = *out;
        status = opscope__convert(converted, (opscope_dtype)dtype->as.integer, out);
        opscope_tensor_release(converted);
    }
    return status;
}

#endif
