/* tensor/autograd/tape.h -- the tape's interface for callers of operators. backward/engine.c walks
 * the tape. */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_TAPE_H
#define OPSCOPE_TENSOR_AUTOGRAD_TAPE_H

#include "tensor/autograd/node_build.h"
#include "tensor/autograd/record.h"

/* Like opscope__record, but inputs may be views of memory written since. */
int opscope__tape_record(const struct opscope__step *step, opscope_tensor *const *outputs);

#endif
