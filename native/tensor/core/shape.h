/* tensor/core/shape.h -- the sizes and strides of tensors: as text, compared, viewed with other
 * sizes. */
#ifndef OPSCOPE_TENSOR_CORE_SHAPE_H
#define OPSCOPE_TENSOR_CORE_SHAPE_H

#include "tensor/core/sizes.h"

struct opscope__sizes_text opscope__shape_text(const opscope_tensor *tensor);
/* Computes strides with which `tensor` has those sizes without a copy; false if none exist. */
bool opscope__view_strides(const opscope_tensor *tensor, int dims, const int64_t *sizes,
                           int64_t *out);
bool opscope__same_sizes(const opscope_tensor *a, const opscope_tensor *b);
/* Whether two elements of the tensor may share memory, as in an expanded view. */
bool opscope__overlaps_itself(const opscope_tensor *tensor);
/* Fails for a tensor that cannot be written in place: read-only memory, or one address for two
 * elements. */
int opscope__check_written(const char *name, const opscope_tensor *target);

#endif
