/* tensor/ops/index/gather_index.h -- elements selected by a tensor of indices along one dimension:
 * for gather and scatter.
 *
 * The position for element [i, j, k] of the index, along dimension 1, is [i, index[i, j, k], k].
 */
#ifndef OPSCOPE_TENSOR_OPS_INDEX_GATHER_INDEX_H
#define OPSCOPE_TENSOR_OPS_INDEX_GATHER_INDEX_H

#include "tensor/kernels/parallel.h"
#include "tensor/ops/index/index_rows.h"

struct opscope__gather_index {
    opscope_tensor *index; /* owned: contiguous, checked */
    const opscope_tensor *tensor;
    int dim;
    int64_t rows, width; /* of the index; a row runs along its last dimension */
    int64_t step;        /* between elements of a row, excluding the contribution of the index */
    int64_t stride;      /* per unit of the index */
};

/* The offset of row `row` of `sizes` in a tensor of those dimensions, excluding dimension `skipped`
 * (-1: none). */
static inline int64_t opscope__row_start(const opscope_tensor *tensor, const int64_t *sizes,
                                         int skipped, int64_t row)
{
    int64_t start = 0;
    for (int i = tensor->dims - 2; i >= 0; i--) {
        start += i != skipped ? row % sizes[i] * opscope__strides(tensor)[i] : 0;
        row /= sizes[i];
    }
    return start;
}

/* On success the caller releases `out->index`. `what` describes, for messages, the tensor that the
 * index applies to. */
static inline int opscope__gather_index_of(const char *name, const opscope_tensor *tensor,
                                           int64_t dim_argument, const opscope_tensor *index,
                                           struct opscope__gather_index *out)
{
    int dim;
    int status = opscope__wrap_dim(name, dim_argument, tensor->dims, &dim);
    if (status != OPSCOPE_OK) {
        return status;
    }
    bool fits = index->dims == tensor->dims;
    for (int i = 0; i < index->dims && fits; i++) {
        fits = i == dim || opscope__sizes(index)[i] <= opscope__sizes(tensor)[i];
    }
    if (!fits) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: an index of sizes %s does not fit %s: as many dimensions are needed, and "
            "none but dimension %d may be larger",
            name, opscope__shape_text(index).text, opscope__shape_text(tensor).text, dim);
    }
    bool is_scalar = tensor->dims == 0;
    int last = is_scalar ? 0 : tensor->dims - 1;
    status =
        opscope__indices(name, index, is_scalar ? 1 : opscope__sizes(tensor)[dim], &out->index);
    out->tensor = tensor;
    out->dim = dim;
    out->width = is_scalar ? 1 : opscope__sizes(index)[last];
    out->rows = index->count == 0 ? 0 : index->count / out->width;
    out->step = is_scalar || dim == last ? 0 : opscope__strides(tensor)[last];
    out->stride = is_scalar ? 0 : opscope__strides(tensor)[dim];
    return status;
}

/* The tensor that an operator changes: self in place, else a copy of it. */
static inline int opscope__changed(const struct opscope__call *call, opscope_tensor *self,
                                   opscope_tensor **out)
{
    if (opscope__call_into(call) == self) {
        *out = opscope_tensor_retain(self);
        return OPSCOPE_OK;
    }
    return opscope__clone(self, out);
}

#endif
