/* tensor/dispatch/spare.h -- calls whose result may take the memory of an argument that is no
 * longer needed. */
#ifndef OPSCOPE_TENSOR_DISPATCH_SPARE_H
#define OPSCOPE_TENSOR_DISPATCH_SPARE_H

#include "tensor/core/call.h"
#include "tensor/core/tensor.h"

/* Whether a result may be written to the tensor, if its only owner gives it up: its memory has no
 * other reader, its elements fill it in order, and no gradient is recorded for it. */
static inline bool opscope__is_spare(const opscope_tensor *tensor)
{
    return opscope_tensor_is_alone(tensor) && tensor->is_contiguous && tensor->grad == NULL &&
           tensor->storage->allocator != NULL && !tensor->storage->read_only;
}

/* As opscope_call, for a caller that has checked the arguments: they are as many as the operator's
 * parameters, defaults included, and of kinds that these take; it returns no list. Callbacks see
 * the first `count`. The call may change the array.
 *
 * The result of an elementwise operator is `spare`, an argument for which opscope__is_spare holds,
 * if it has the result's dtype and sizes and the call records no gradient; then outputs[0] is
 * another reference to it. It may be NULL. */
int opscope__call_checked(const opscope_operator *op, opscope_argument *arguments, size_t count,
                          opscope_tensor *spare, opscope_tensor **outputs);

#endif
