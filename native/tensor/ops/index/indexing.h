/* tensor/ops/index/indexing.h -- positions given by several tensors of indices together, for index
 * and index_put.
 *
 * The indices apply to `count` adjacent dimensions of a tensor and broadcast together. Each of
 * their elements selects one row: the dimensions before and after stay. Elements move between these
 * rows, which may have any strides, and a contiguous tensor of the result's sizes.
 */
#ifndef OPSCOPE_TENSOR_OPS_INDEX_INDEXING_H
#define OPSCOPE_TENSOR_OPS_INDEX_INDEXING_H

#include <string.h>

#include "tensor/ops/index/index_rows.h"

struct opscope__rows {
    int dim, count; /* the dimensions that the indices apply to */
    int dims;       /* of the result: those before, the indices' own, those after */
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    opscope_tensor *offsets; /* owned: of each row, in elements; NULL once released */
};

/* Adds the contribution of one tensor of indices to `offsets`; `sizes` are those that all tensors
 * broadcast to. */
static inline void opscope__add_offsets(int64_t *offsets, int dims, const int64_t *sizes,
                                        const opscope_tensor *index, int64_t stride)
{
    const int64_t *values = (const int64_t *)(const void *)index->data;
    int missing = dims - index->dims;
    int64_t at[OPSCOPE_DIM_LIMIT] = {0}, step[OPSCOPE_DIM_LIMIT] = {0}, from = 0;
    for (int i = missing; i < dims; i++) {
        step[i] =
            opscope__sizes(index)[i - missing] == 1 ? 0 : opscope__strides(index)[i - missing];
    }
    int64_t count = opscope__count_of(dims, sizes);
    for (int64_t k = 0; k < count; k++) {
        offsets[k] += values[from] * stride;
        for (int i = dims - 1; i >= 0; i--) {
            from += step[i];
            if (++at[i] < sizes[i]) {
                break;
            }
            from -= step[i] * sizes[i];
            at[i] = 0;
        }
    }
}

static inline int opscope__fail_indexed(const char *name, const opscope_tensor *self,
                                        uint32_t count, int64_t dim)
{
    return opscope_tensor_fail(
        OPSCOPE_ERROR_INDEX,
        "%s: %u tensors of indices from dimension %lld on, for a tensor of sizes "
        "%s",
        name, (unsigned)count, (long long)dim, opscope__shape_text(self).text);
}

/* Reads the indices. On success the caller releases rows->offsets. */
static inline int opscope__rows_find(const char *name, const opscope_tensor *self,
                                     opscope_tensor *const *indices, uint32_t count, int64_t dim,
                                     struct opscope__rows *rows)
{
    int dims = 0, status = opscope__wrap_dim(name, dim, self->dims, &rows->dim);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (count == 0 || count > (uint32_t)(self->dims - rows->dim)) {
        return opscope__fail_indexed(name, self, count, dim);
    }
    int64_t own[OPSCOPE_DIM_LIMIT];
    for (uint32_t i = 0; i < count && status == OPSCOPE_OK; i++) {
        status = opscope__broadcast(name, &dims, own, indices[i]->dims, opscope__sizes(indices[i]));
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    rows->count = (int)count;
    rows->dims = self->dims - rows->count + dims;
    if (rows->dims > OPSCOPE_DIM_LIMIT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "%s: the result would have %d dimensions; at "
                                   "most %d",
                                   name, rows->dims, OPSCOPE_DIM_LIMIT);
    }
    int after = self->dims - rows->dim - rows->count;
    memcpy(rows->sizes, opscope__sizes(self), (size_t)rows->dim * sizeof(int64_t));
    memcpy(rows->sizes + rows->dim, own, (size_t)dims * sizeof(int64_t));
    memcpy(rows->sizes + rows->dim + dims, opscope__sizes(self) + rows->dim + rows->count,
           (size_t)after * sizeof(int64_t));
    status = opscope__tensor_empty(dims, own, OPSCOPE_INT64, &rows->offsets);
    if (status != OPSCOPE_OK) {
        return status;
    }
    memset(rows->offsets->data, 0, (size_t)rows->offsets->count * sizeof(int64_t));
    for (int i = 0; i < rows->count && status == OPSCOPE_OK; i++) {
        opscope_tensor *values = NULL;
        status = opscope__indices(name, indices[i], opscope__sizes(self)[rows->dim + i], &values);
        if (status == OPSCOPE_OK) {
            opscope__add_offsets((int64_t *)(void *)rows->offsets->data, dims, own, values,
                                 opscope__strides(self)[rows->dim + i]);
            opscope_tensor_release(values);
        }
    }
    if (status != OPSCOPE_OK) {
        opscope_tensor_release(rows->offsets);
    }
    return status;
}

/* Moves `elements` adjacent elements between a row and the packed tensor. */
typedef void opscope__row_mover(char *row, char *packed, int64_t elements);

/* Some dimensions of the strided tensor, walked in order, and the current offset. */
struct opscope__odometer {
    int dims;
    const int64_t *sizes, *strides;
    int64_t at[OPSCOPE_DIM_LIMIT], offset;
};

/* Moves to the next position; after the last one, returns false at the first position again. */
static inline bool opscope__odometer_step(struct opscope__odometer *odometer)
{
    for (int i = odometer->dims - 1; i >= 0; i--) {
        odometer->offset += odometer->strides[i];
        if (++odometer->at[i] < odometer->sizes[i]) {
            return true;
        }
        odometer->offset -= odometer->strides[i] * odometer->sizes[i];
        odometer->at[i] = 0;
    }
    return false;
}

/* Moves every element of the result, in order: `self` has the rows, `packed` is contiguous. */
static inline void opscope__rows_move(const struct opscope__rows *rows, const opscope_tensor *self,
                                      char *packed, opscope__row_mover *move)
{
    int64_t bytes = (int64_t)opscope_dtype_bytes((opscope_dtype)self->dtype);
    const int64_t *sizes = opscope__sizes(self), *strides = opscope__strides(self);
    int after = self->dims - rows->dim - rows->count;
    const int64_t *after_sizes = sizes + rows->dim + rows->count;
    const int64_t *after_strides = strides + rows->dim + rows->count;
    /* Moves trailing dimensions that are contiguous in memory as one. */
    int64_t block = 1;
    while (after > 0 && (after_strides[after - 1] == block || after_sizes[after - 1] == 1)) {
        block *= after_sizes[--after];
    }
    struct opscope__odometer outer = {.dims = rows->dim, .sizes = sizes, .strides = strides};
    struct opscope__odometer inner = {
        .dims = after, .sizes = after_sizes, .strides = after_strides};
    const int64_t *offsets = (const int64_t *)(const void *)rows->offsets->data;
    if (opscope__count_of(rows->dims, rows->sizes) == 0) {
        return;
    }
    do {
        for (int64_t k = 0; k < rows->offsets->count; k++) {
            char *row = self->data + (outer.offset + offsets[k]) * bytes;
            do {
                move(row + inner.offset * bytes, packed, block);
                packed += block * bytes;
            } while (opscope__odometer_step(&inner));
        }
    } while (opscope__odometer_step(&outer));
}

#endif
