/* tensor/autograd/write.h -- writes in place, on the tape. */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_WRITE_H
#define OPSCOPE_TENSOR_AUTOGRAD_WRITE_H

#include "opscope/tensor.h"

/* Whether the tape can record a write in place to the tensor. */
int opscope__tape_check_inplace(const char *name, opscope_tensor *target);
/* Gives `copy`, a copy of what `tensor` holds now, the tensor's place on the tape; not for leaves
 * that require grad, which backward must reach themselves. */
int opscope__tape_stand_in(opscope_tensor *tensor, opscope_tensor *copy);
/* Extends the history of a written view's base by the write. */
int opscope__tape_rebase(opscope_tensor *target);

#endif
