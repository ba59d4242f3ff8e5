/* tensor/blas.h -- matrix products, by a BLAS where one was loaded. */
#ifndef OPSCOPE_TENSOR_BLAS_H
#define OPSCOPE_TENSOR_BLAS_H

#include "opscope/tensor.h"

/* A matrix in memory: one stride is 1 or the tensor cannot be handed to a BLAS as it is. */
struct opscope__matrix {
    const char *data;
    int64_t rows, columns;
    int64_t row_stride, column_stride; /* elements */
};

/* c = a b, or c += a b where `add`; c is row-major with `c_stride` elements to the row. float32,
 * float64 and the integers. */
int opscope__gemm(const char *name, opscope_dtype dtype, const struct opscope__matrix *a,
                  const struct opscope__matrix *b, char *c, int64_t c_stride, bool add);

#endif
