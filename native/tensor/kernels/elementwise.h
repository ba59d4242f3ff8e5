/* tensor/kernels/elementwise.h -- operators that compute each element from the operands' elements
 * at the same position.
 *
 * This code handles dtypes, broadcasting and memory. Each operator provides the loops over
 * elements (struct opscope__elementwise), made with the macros of ops/elementwise/loops.h.
 */
#ifndef OPSCOPE_TENSOR_KERNELS_ELEMENTWISE_H
#define OPSCOPE_TENSOR_KERNELS_ELEMENTWISE_H

#include "tensor/core/operator.h"
#include "tensor/kernels/iterator.h"

/* `operands` are tensors or numbers, at least one of them a tensor. The loop gets up to two
 * `numbers` (may be NULL) as its user argument: elements of the dtype of the computation, 8 bytes
 * apart. */
int opscope__elementwise(struct opscope__call *call, const struct opscope__elementwise *spec,
                         const opscope_argument *operands, size_t operand_count,
                         const opscope_argument *numbers, size_t number_count,
                         opscope_tensor **out);

/* The dtype in which tensors and numbers compute together. A tensor with dimensions has priority
 * over one without, and that over a number, unless the lower one is of a higher category (bool,
 * integers, floats). */
opscope_dtype opscope__dtype_of(const opscope_argument *operands, size_t count, uint32_t apart);

/* A new tensor of those sizes. Its memory has the layout of `like` if `like` fills its memory
 * without gaps; else it is contiguous. */
int opscope__empty_like(const opscope_tensor *like, int dims, const int64_t *sizes,
                        opscope_dtype dtype, opscope_tensor **out);

#endif
