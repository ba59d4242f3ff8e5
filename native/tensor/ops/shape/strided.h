/* tensor/ops/shape/strided.h -- tensors in a given layout, and views of them, for the strided
 * operators. */
#ifndef OPSCOPE_TENSOR_OPS_SHAPE_STRIDED_H
#define OPSCOPE_TENSOR_OPS_SHAPE_STRIDED_H

#include <string.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/kernels/convert.h"

static inline int opscope__check_strides(const char *name, const char *what, int dims,
                                         const opscope_argument *strides)
{
    return (int)strides->count == dims
               ? OPSCOPE_OK
               : opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                     "%s: %u strides for the %d dimensions of %s", name,
                                     strides->count, dims, what);
}

/* A new tensor of those sizes and strides, with all of its memory set to zero. */
static inline int opscope__zeros_strided(const char *name, int dims, const int64_t *sizes,
                                         const opscope_argument *strides, opscope_dtype dtype,
                                         opscope_tensor **out)
{
    struct opscope__extent extent;
    opscope_tensor *memory;
    int status = dims <= OPSCOPE_DIM_LIMIT
                     ? opscope__check_strides(name, "the base", dims, strides)
                     : opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: at most %d dimensions, not %d",
                                           name, OPSCOPE_DIM_LIMIT, dims);
    for (int i = 0; i < dims && status == OPSCOPE_OK; i++) {
        if (sizes[i] < 0) {
            status = opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: size %lld is negative", name,
                                         (long long)sizes[i]);
        }
    }
    if (status == OPSCOPE_OK) {
        status = opscope__extent_of(dims, sizes, strides->as.integers, &extent);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t count = opscope__count_of(dims, sizes) != 0 ? extent.last - extent.first + 1 : 0;
    status = opscope__tensor_empty(1, &count, dtype, &memory);
    if (status == OPSCOPE_OK) {
        memset(memory->data, 0, (size_t)count * opscope_dtype_bytes(dtype));
        status = opscope__tensor_view(memory, dims, sizes, strides->as.integers,
                                      count != 0 ? -extent.first : 0, out);
        opscope_tensor_release(memory);
    }
    return status;
}

/* `self` in memory with those strides: itself if it has them, else a copy. A new reference. */
static inline int opscope__as_laid_out(const char *name, opscope_tensor *self,
                                       const opscope_argument *strides, bool copies,
                                       opscope_tensor **out)
{
    if (!copies && (int)strides->count == self->dims &&
        memcmp(strides->as.integers, opscope__strides(self), strides->count * sizeof(int64_t)) ==
            0) {
        *out = opscope_tensor_retain(self);
        return OPSCOPE_OK;
    }
    opscope_tensor *made;
    int status = opscope__zeros_strided(name, self->dims, opscope__sizes(self), strides,
                                        (opscope_dtype)self->dtype, &made);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__copy(made, self);
    return opscope__tensor_finish(status, made, out);
}

/* The view of `base` of those sizes, whose first element lies `offset` elements after base's
 * first. */
static inline int opscope__strided_part(const char *name, const opscope_tensor *base, int dims,
                                        const int64_t *sizes, const opscope_argument *strides,
                                        int64_t offset, opscope_tensor **out)
{
    struct opscope__extent whole, part;
    int status = opscope__check_strides(name, "the view", dims, strides);
    for (int i = 0; i < dims && status == OPSCOPE_OK; i++) {
        if (dims > OPSCOPE_DIM_LIMIT || sizes[i] < 0) {
            status = opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: sizes %s cannot be", name,
                                         opscope__sizes_text(dims, sizes).text);
        }
    }
    if (status == OPSCOPE_OK) {
        status =
            opscope__extent_of(base->dims, opscope__sizes(base), opscope__strides(base), &whole);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__extent_of(dims, sizes, strides->as.integers, &part);
    }
    int64_t first, last;
    if (status == OPSCOPE_OK && opscope__count_of(dims, sizes) != 0 &&
        (base->count == 0 || __builtin_add_overflow(offset, part.first, &first) ||
         __builtin_add_overflow(offset, part.last, &last) || first < whole.first ||
         last > whole.last)) {
        status = opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE,
            "%s: sizes %s with strides %s from element %lld reach beyond a base of "
            "sizes %s",
            name, opscope__sizes_text(dims, sizes).text,
            opscope__sizes_text(dims, strides->as.integers).text, (long long)offset,
            opscope__shape_text(base).text);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (opscope__count_of(dims, sizes) == 0) {
        offset = 0;
    }
    return opscope__tensor_view(base, dims, sizes, strides->as.integers, offset, out);
}

#endif
