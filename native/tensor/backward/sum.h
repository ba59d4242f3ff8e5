/* tensor/backward/sum.h -- adding gradients up. */
#ifndef OPSCOPE_TENSOR_BACKWARD_SUM_H
#define OPSCOPE_TENSOR_BACKWARD_SUM_H

#include "opscope/tensor.h"

/* *sum += gradient, in a walk that owns *sum (which may be NULL). Takes the reference to
 * `gradient`. */
int opscope__sum_add(opscope_tensor **sum, opscope_tensor *gradient);
/* *kept += gradient, where other walks may do the same to `owner`'s gradient at this time. */
int opscope__accumulate(const void *owner, opscope_tensor **kept, opscope_tensor *gradient);
/* Makes *gradient fit what it is the gradient of: sizes must, the dtype is converted. */
int opscope__gradient_fit(const char *name, const opscope_tensor *of, opscope_tensor **gradient);

#endif
