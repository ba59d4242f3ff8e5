/* tensor/ops/shape/unfold.h -- windows along a dimension as a view, for unfold and its gradient.
 * window.h has windows over images. */
#ifndef OPSCOPE_TENSOR_OPS_SHAPE_UNFOLD_H
#define OPSCOPE_TENSOR_OPS_SHAPE_UNFOLD_H

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"

/* `arguments` are the dimension, the size and the step. */
static inline int opscope__unfolded(const char *name, const opscope_tensor *self,
                                    const opscope_argument *arguments, opscope_tensor **out)
{
    int dim;
    int status = opscope__wrap_dim(name, arguments[0].as.integer, self->dims, &dim);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t size = arguments[1].as.integer, step = arguments[2].as.integer;
    int64_t whole = self->dims > 0 ? opscope__sizes(self)[dim] : 1;
    if (size < 0 || size > whole || step <= 0 || self->dims == OPSCOPE_DIM_LIMIT) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: windows of %lld, %lld apart, along dimension %d of sizes %s: expected a "
            "size within the dimension, a positive step, and less than %d dimensions",
            name, (long long)size, (long long)step, dim, opscope__shape_text(self).text,
            OPSCOPE_DIM_LIMIT);
    }
    int64_t sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    for (int i = 0; i < self->dims; i++) {
        sizes[i] = i == dim ? (whole - size) / step + 1 : opscope__sizes(self)[i];
        /* The stride of a single window is never used; a large step must not overflow. */
        strides[i] = opscope__strides(self)[i] * (i == dim && sizes[i] > 1 ? step : 1);
    }
    sizes[self->dims] = size;
    strides[self->dims] = self->dims > 0 ? opscope__strides(self)[dim] : 1;
    return opscope__tensor_view(self, self->dims + 1, sizes, strides, 0, out);
}

#endif
