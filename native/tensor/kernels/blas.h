/* tensor/kernels/blas.h -- matrix products, by a BLAS if one is loaded. */
#ifndef OPSCOPE_TENSOR_KERNELS_BLAS_H
#define OPSCOPE_TENSOR_KERNELS_BLAS_H

#include "opscope/tensor.h"

/* A matrix in memory. A BLAS takes it without a copy only if one of its strides is 1. */
struct opscope__matrix {
    const char *data;
    int64_t rows, columns;
    int64_t row_stride, column_stride; /* in elements */
};

/* Computes c = a b, or c += a b if `add`; c is row-major with a row stride of `c_stride` elements.
 * For float32, float64 and the integers. */
int opscope__gemm(const char *name, opscope_dtype dtype, const struct opscope__matrix *a,
                  const struct opscope__matrix *b, char *c, int64_t c_stride, bool add);

#endif
