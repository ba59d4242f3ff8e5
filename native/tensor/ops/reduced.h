/* tensor/ops/reduced.h -- the arguments that reductions share: which dimensions, kept or not. */
#ifndef OPSCOPE_TENSOR_OPS_REDUCED_H
#define OPSCOPE_TENSOR_OPS_REDUCED_H

#include "tensor/convert.h"
#include "tensor/formula.h"
#include "tensor/ops/folds.h"
#include "tensor/shape.h"

/* The dimensions that a list argument (None: all) names. */
static inline int opscope__reduced_set(const struct opscope__call *call, const opscope_tensor *self,
                                       const opscope_argument *dim, uint32_t *out)
{
    bool all = dim->kind == OPSCOPE_ARGUMENT_NONE;
    return opscope__dim_set(opscope__call_name(call), all ? NULL : dim->as.integers,
                            all ? 0 : dim->count, self->dims, out);
}

/* `reductions` are by the dtype of the input, outputs of dtype `outputs_as` each. `dtype` (may be NULL, or
 * None) asks for another input first. */
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
    if (reductions[self->dtype].row == NULL) {
        status = opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: not defined for %s",
                                     opscope__call_name(call), opscope_dtype_name(self->dtype));
    } else {
        status = opscope__reduce(&reductions[self->dtype], self, set, arguments[2].as.integer != 0,
                                 outputs_as[self->dtype], out);
    }
    opscope_tensor_release(converted);
    return status;
}

#endif
