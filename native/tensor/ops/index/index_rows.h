/* tensor/ops/index/index_rows.h -- selects whole rows of a tensor by a list of indices, and adds
 * rows back. */
#ifndef OPSCOPE_TENSOR_OPS_INDEX_INDEX_ROWS_H
#define OPSCOPE_TENSOR_OPS_INDEX_INDEX_ROWS_H

#include <string.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

/* `index` as contiguous int64, each within [-size, size), with negative ones counted from the end:
 * a new reference. */
static inline int opscope__indices(const char *name, const opscope_tensor *index, int64_t size,
                                   opscope_tensor **out)
{
    if (opscope_dtype_is_floating((opscope_dtype)index->dtype) || index->dtype == OPSCOPE_BOOL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: indices are integers, not %s", name,
                                   opscope_dtype_name((opscope_dtype)index->dtype));
    }
    opscope_tensor *made;
    int status = opscope__convert(index, OPSCOPE_INT64, &made);
    int64_t *all = status == OPSCOPE_OK ? (int64_t *)(void *)made->data : NULL;
    for (int64_t i = 0; status == OPSCOPE_OK && i < made->count; i++) {
        if (all[i] < -size || all[i] >= size) {
            status = opscope_tensor_fail(
                OPSCOPE_ERROR_INDEX, "%s: index %lld is out of range for a dimension of size %lld",
                name, (long long)all[i], (long long)size);
            opscope_tensor_release(made);
        } else {
            all[i] += all[i] < 0 ? size : 0;
        }
    }
    if (status == OPSCOPE_OK) {
        *out = made;
    }
    return status;
}

/* Copies rows of `self` (contiguous: outer, size, inner bytes) selected along a dimension. */
static inline void opscope__pick(char *out, const char *in, int64_t outer, int64_t size,
                                 int64_t bytes, const int64_t *indices, int64_t count)
{
    for (int64_t i = 0; i < outer; i++) {
        for (int64_t j = 0; j < count; j++) {
            memcpy(out + (i * count + j) * bytes, in + (i * size + indices[j]) * bytes,
                   (size_t)bytes);
        }
    }
}

/* The sizes of `self` with dimension `dim` replaced by those of `index`. */
static inline int opscope__picked_sizes(const char *name, const opscope_tensor *self, int dim,
                                        int index_dims, const int64_t *index_sizes, int64_t *sizes,
                                        int *dims)
{
    if (self->dims - 1 + index_dims > OPSCOPE_DIM_LIMIT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: at most %d dimensions", name,
                                   OPSCOPE_DIM_LIMIT);
    }
    int at = 0;
    for (int i = 0; i < self->dims; i++) {
        if (i != dim) {
            sizes[at++] = opscope__sizes(self)[i];
            continue;
        }
        for (int j = 0; j < index_dims; j++) {
            sizes[at++] = index_sizes[j];
        }
    }
    *dims = at;
    return OPSCOPE_OK;
}

/* All steps together, for index_select and embedding. */
static inline int opscope__pick_rows(const char *name, opscope_tensor *self, int dim,
                                     const opscope_tensor *index, opscope_tensor **out)
{
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    int dims = 0;
    opscope_tensor *indices = NULL, *flat = NULL, *made = NULL;
    int status =
        opscope__picked_sizes(name, self, dim, index->dims, opscope__sizes(index), sizes, &dims);
    int64_t size = opscope__sizes(self)[dim];
    if (status == OPSCOPE_OK) {
        status = opscope__indices(name, index, size, &indices);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(self, &flat);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(dims, sizes, (opscope_dtype)self->dtype, &made);
    }
    if (status == OPSCOPE_OK && made->count > 0) {
        int64_t outer = opscope__count_of(dim, opscope__sizes(self));
        int64_t inner = flat->count / (outer * size);
        opscope__pick(made->data, flat->data, outer, size,
                      inner * (int64_t)opscope_dtype_bytes((opscope_dtype)self->dtype),
                      (const int64_t *)(const void *)indices->data, indices->count);
    }
    opscope_tensor_release(indices);
    opscope_tensor_release(flat);
    if (status == OPSCOPE_OK) {
        *out = made;
    }
    return status;
}

#endif
