/* tensor/ops/linalg/batched.h -- batched products as in PyTorch's matmul, in one pass: a vector is
 * one row or column, and the dimensions before the last two broadcast. */
#ifndef OPSCOPE_TENSOR_OPS_LINALG_BATCHED_H
#define OPSCOPE_TENSOR_OPS_LINALG_BATCHED_H

#include <string.h>

#include "tensor/kernels/convert.h"
#include "tensor/ops/linalg/product.h"

/* A view of the tensor in which a vector is a matrix. */
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

/* The offset of batch `index` of the broadcast batches in the tensor. */
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
