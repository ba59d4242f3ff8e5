/* tensor/ops/shape/slice.h -- reads the arguments of a slice, for slice and its gradient. */
#ifndef OPSCOPE_TENSOR_OPS_SHAPE_SLICE_H
#define OPSCOPE_TENSOR_OPS_SHAPE_SLICE_H

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"

struct opscope__slice {
    int dim;
    int64_t start, count, step;
};

/* `arguments` are dim, start (or None), end (or None) and step; bounds are clipped as in Python's
 * slice.indices. */
static inline int opscope__slice_of(const char *name, int dims, const int64_t *sizes,
                                    const opscope_argument *arguments, struct opscope__slice *out)
{
    int status = opscope__wrap_dim(name, arguments[0].as.integer, dims, &out->dim);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t step = arguments[3].as.integer;
    if (dims == 0 || step == 0 || step == INT64_MIN) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE, "%s: %s", name,
            dims == 0 ? "a tensor without dimensions cannot be sliced" : "the step must not be 0");
    }
    int64_t size = sizes[out->dim];
    int64_t bounds[2] = {step > 0 ? 0 : size - 1, step > 0 ? size : -1};
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    for (int i = 0; i < 2; i++) {
        if (arguments[1 + i].kind != OPSCOPE_ARGUMENT_NONE) {
            int64_t bound = arguments[1 + i].as.integer;
            bound += bound < 0 ? size : 0;
            bounds[i] = bound < low ? low : bound > high ? high : bound;
        }
    }
    int64_t span = step > 0 ? bounds[1] - bounds[0] : bounds[0] - bounds[1];
    int64_t stride = step > 0 ? step : -step;
    out->start = bounds[0];
    out->count = span > 0 ? (span - 1) / stride + 1 : 0;
    out->step = step;
    return OPSCOPE_OK;
}

/* The slice of `whole` as a view. */
static inline int opscope__slice_view(const opscope_tensor *whole,
                                      const struct opscope__slice *slice, opscope_tensor **out)
{
    int64_t sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    for (int i = 0; i < whole->dims; i++) {
        sizes[i] = opscope__sizes(whole)[i];
        strides[i] = opscope__strides(whole)[i];
    }
    int64_t shift = slice->count > 0 ? slice->start * strides[slice->dim] : 0;
    sizes[slice->dim] = slice->count;
    /* A step larger than the dimension selects one element; its stride is never used. */
    strides[slice->dim] *= slice->count > 1 ? slice->step : 1;
    return opscope__tensor_view(whole, whole->dims, sizes, strides, shift, out);
}

#endif
