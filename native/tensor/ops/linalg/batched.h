/* tensor/ops/batched.h -- a product of tensors as PyTorch's matmul defines it, in one pass over
 * batches: vectors count as one row or column, dimensions before the last two broadcast. */
#ifndef OPSCOPE_TENSOR_OPS_BATCHED_H
#define OPSCOPE_TENSOR_OPS_BATCHED_H

#include <string.h>

#include "tensor/convert.h"
#include "tensor/ops/product.h"

/* A view in which a vector is a matrix. */
static inline int opscope__as_matrices(const opscope_tensor *tensor, bool as_row,
                                       opscope_tensor **out)
{
    if (tensor->dims >= 2) {
        return opscope__tensor_alias(tensor, out);
    }
    int64_t size = opscope__sizes(tensor)[0], stride = opscope__strides(tensor)[0];
    int64_t sizes[] = {as_row ? 1 : size, as_row ? size : 1};
    int64_t strides[] = {as_row ? size : stride, as_row ? stride : 1};
    return opscope__tensor_view(tensor, 2, sizes, strides, 0, out);
}

/* Where batch `index` of the broadcast batches begins in the tensor. */
static inline int64_t opscope__batch_shift(const opscope_tensor *tensor, int batch_dims,
                                           const int64_t *batch, int64_t index)
{
    int64_t shift = 0;
    for (int i = batch_dims - 1; i >= 0; i--) {
        int own = i - (batch_dims - (tensor->dims - 2));
        int64_t at = index % batch[i];
        index /= batch[i];
        if (own >= 0 && opscope__sizes(tensor)[own] != 1) {
            shift += at * opscope__strides(tensor)[own];
        }
    }
    return shift;
}

#endif
