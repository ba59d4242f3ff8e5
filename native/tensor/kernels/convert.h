/* tensor/convert.h -- moving elements: copy, fill and convert between dtypes, for any strides. */
#ifndef OPSCOPE_TENSOR_CONVERT_H
#define OPSCOPE_TENSOR_CONVERT_H

#include "opscope/tensor.h"

/* `source` broadcasts to `target`'s sizes (checked before); dtypes may differ. */
int opscope__copy(const opscope_tensor *target, const opscope_tensor *source);
/* A contiguous copy. */
int opscope__clone(const opscope_tensor *tensor, opscope_tensor **out);
/* A contiguous copy of that dtype. */
int opscope__convert(const opscope_tensor *tensor, opscope_dtype dtype, opscope_tensor **out);
/* The tensor itself where it is contiguous, else a copy: a new reference. */
int opscope__contiguous(opscope_tensor *tensor, opscope_tensor **out);
/* All elements become the number. */
void opscope__fill(const opscope_tensor *tensor, const opscope_argument *number);
/* The number as an element of that dtype; `out` has room for 8 bytes. */
void opscope__number_as(const opscope_argument *number, opscope_dtype dtype, void *out);
/* Whether the number can be an element of that dtype: within its range, and no NaN among integers.
 * What is behind the point is cut off. */
int opscope__check_number(const char *name, const opscope_argument *number, opscope_dtype dtype);
/* Whether results of dtype `from` may be written into a tensor of dtype `to`: not from floating to
 * integers, nor from numbers to bool. */
int opscope__check_store(const char *name, opscope_dtype to, opscope_dtype from);

#endif
