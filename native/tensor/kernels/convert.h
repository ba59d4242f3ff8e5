/* tensor/kernels/convert.h -- copies, fills and converts elements between dtypes, for any
 * strides. */
#ifndef OPSCOPE_TENSOR_KERNELS_CONVERT_H
#define OPSCOPE_TENSOR_KERNELS_CONVERT_H

#include "opscope/tensor.h"

/* `source` must broadcast to the sizes of `target` (the caller checks this); dtypes may differ. */
int opscope__copy(const opscope_tensor *target, const opscope_tensor *source);
/* A contiguous copy. */
int opscope__clone(const opscope_tensor *tensor, opscope_tensor **out);
/* A contiguous copy of that dtype. */
int opscope__convert(const opscope_tensor *tensor, opscope_dtype dtype, opscope_tensor **out);
/* The tensor itself if it is contiguous, else a copy: a new reference. */
int opscope__contiguous(opscope_tensor *tensor, opscope_tensor **out);
/* Sets all elements to the number. */
void opscope__fill(const opscope_tensor *tensor, const opscope_argument *number);
/* Stores the number as an element of that dtype; `out` has room for 8 bytes. */
void opscope__number_as(const opscope_argument *number, opscope_dtype dtype, void *out);
/* Fails if the number cannot be an element of that dtype: it must be in range, and not NaN for
 * integers. Fractions are truncated. */
int opscope__check_number(const char *name, const opscope_argument *number, opscope_dtype dtype);
/* Fails if results of dtype `from` cannot be written into a tensor of dtype `to`: floating into
 * integers, numbers into bool. */
int opscope__check_store(const char *name, opscope_dtype to, opscope_dtype from);

#endif
