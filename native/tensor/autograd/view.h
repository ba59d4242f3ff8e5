/* tensor/autograd/view.h -- views on the tape: one history for one piece of memory. */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_VIEW_H
#define OPSCOPE_TENSOR_AUTOGRAD_VIEW_H

#include "tensor/autograd/grad.h"

/* Records that `view`, which an operator just created from `of`, is a view of it. */
int opscope__view_note(opscope_tensor *of, opscope_tensor *view, enum opscope__view kind);
/* Gives a view the history of what its base holds now; does nothing to other tensors. */
int opscope__view_refresh(opscope_tensor *view);

/* Elements from the first of the base to the first of the view. */
static inline int64_t opscope__view_offset(const opscope_tensor *view, const opscope_tensor *base)
{
    return (view->data - base->data) / (int64_t)opscope_dtype_bytes((opscope_dtype)base->dtype);
}

#endif
