/* tensor/ops/reduce/extreme_along.h -- shared by max and min: the extreme elements along a
 * dimension, and their indices. argmax and argmin search for them (extremes.h). */
#ifndef OPSCOPE_TENSOR_OPS_REDUCE_EXTREME_ALONG_H
#define OPSCOPE_TENSOR_OPS_REDUCE_EXTREME_ALONG_H

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

/* `search` is the operator that finds the indices: "argmax". `arguments`: the tensor, the
 * dimension, keepdim. */
static inline int opscope__extreme_along(const struct opscope__call *call, const char *search,
                                         const opscope_argument *arguments,
                                         opscope_tensor **outputs)
{
    struct opscope__formula f = {0};
    opscope_tensor *self = arguments[0].as.tensor;
    int dim;
    int status =
        opscope__wrap_dim(opscope__call_name(call), arguments[1].as.integer, self->dims, &dim);
    if (status != OPSCOPE_OK) {
        return status;
    }
    bool keeps = arguments[2].as.integer != 0 || self->dims == 0;
    opscope_tensor *indices =
        opscope__f(&f, search, opscope__T(self), opscope__I(dim), opscope__B(self->dims > 0));
    opscope_tensor *values =
        opscope__f(&f, "gather", opscope__T(self), opscope__I(dim), opscope__T(indices));
    if (!keeps) {
        const opscope_argument dims = opscope__L(((int64_t[]){dim}), 1);
        indices = opscope__f(&f, "squeeze", opscope__T(indices), dims);
        values = opscope__f(&f, "squeeze", opscope__T(values), dims);
    }
    outputs[0] = opscope__keep(values);
    outputs[1] = opscope__keep(indices);
    return opscope__formula_end(&f, outputs, 2);
}

#endif
