/* tensor/ops/linalg/product.h -- shared by the matrix products: their checks, and a product of two
 * matrices. */
#ifndef OPSCOPE_TENSOR_OPS_LINALG_PRODUCT_H
#define OPSCOPE_TENSOR_OPS_LINALG_PRODUCT_H

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/blas.h"

/* The last two dimensions of a tensor as a matrix, `shift` elements after the first element. */
static inline struct opscope__matrix opscope__matrix_of(const opscope_tensor *tensor, int64_t shift)
{
    const int64_t *sizes = opscope__sizes(tensor) + tensor->dims - 2;
    const int64_t *strides = opscope__strides(tensor) + tensor->dims - 2;
    return (struct opscope__matrix){
        tensor->data + shift * (int64_t)opscope_dtype_bytes((opscope_dtype)tensor->dtype), sizes[0],
        sizes[1], strides[0], strides[1]};
}

static inline int opscope__check_product(const char *name, const opscope_tensor *a,
                                         const opscope_tensor *b, int dims)
{
    if (a->dims != dims || b->dims != dims) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME, "%s: expected two tensors of %d dimensions, got sizes %s and %s",
            name, dims, opscope__shape_text(a).text, opscope__shape_text(b).text);
    }
    if (a->dtype != b->dtype) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: both tensors must be of one dtype, got %s and %s", name,
                                   opscope_dtype_name((opscope_dtype)a->dtype),
                                   opscope_dtype_name((opscope_dtype)b->dtype));
    }
    if (opscope__sizes(a)[dims - 1] != opscope__sizes(b)[dims - 2]) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: sizes %s and %s do not multiply: %lld columns, but %lld rows", name,
            opscope__shape_text(a).text, opscope__shape_text(b).text,
            (long long)opscope__sizes(a)[dims - 1], (long long)opscope__sizes(b)[dims - 2]);
    }
    return OPSCOPE_OK;
}

/* Multiplies two matrices into a new one. */
static inline int opscope__product(const char *name, const opscope_tensor *a,
                                   const opscope_tensor *b, opscope_tensor **out)
{
    int status = opscope__check_product(name, a, b, 2);
    opscope_tensor *made;
    if (status == OPSCOPE_OK) {
        int64_t sizes[] = {opscope__sizes(a)[0], opscope__sizes(b)[1]};
        status = opscope__tensor_empty(2, sizes, (opscope_dtype)a->dtype, &made);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    struct opscope__matrix x = opscope__matrix_of(a, 0), y = opscope__matrix_of(b, 0);
    status = opscope__gemm(name, (opscope_dtype)a->dtype, &x, &y, made->data, y.columns, false);
    return opscope__tensor_finish(status, made, out);
}

#endif
