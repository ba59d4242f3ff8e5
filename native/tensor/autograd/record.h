/* tensor/autograd/record.h -- records a call of an operator as a node. */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_RECORD_H
#define OPSCOPE_TENSOR_AUTOGRAD_RECORD_H

#include "tensor/core/registry.h"
#include "tensor/core/tensor.h"

/* What the tape records of a call. */
struct opscope__step {
    const opscope_operator *op;
    const opscope_argument *arguments; /* all of them, with defaults */
    int64_t sequence_nr;
    const opscope_storage *written; /* of an in-place call: the storage it wrote; else NULL */
    opscope_tensor *const *saved;   /* by the forward, for backward */
    size_t saved_count;
};

/* Creates the call's node and points its outputs at it. The history of its inputs must be up to
 * date (tape.h has a variant for any inputs). */
int opscope__record(const struct opscope__step *step, opscope_tensor *const *outputs);
/* Records `output` as the result of that operator, without a call. */
int opscope__record_operator(const char *name, const opscope_argument *arguments,
                             opscope_tensor *output);

#endif
