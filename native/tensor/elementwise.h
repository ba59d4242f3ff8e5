/* tensor/elementwise.h -- operators that compute each element from those in the same place.
 *
 * Here are dtypes, broadcasting and memory; the loops over elements are the operator's own, made
 * with the macros of ops/loops.h.
 */
#ifndef OPSCOPE_TENSOR_ELEMENTWISE_H
#define OPSCOPE_TENSOR_ELEMENTWISE_H

#include "tensor/iterator.h"
#include "tensor/operator.h"

struct opscope__elementwise {
    opscope__loop loops[OPSCOPE_DTYPE_COUNT]; /* by the dtype of computing; NULL: not for this one.
                                                 Operand 0 is the output */
    int64_t cost;                             /* of an element, in additions */
    uint32_t apart;    /* bit i: operand i is bool and has no say in the dtype */
    bool gives_bool;   /* the output's dtype is bool, not that of computing */
    bool needs_floats; /* integers are computed in float32 */
};

/* `operands` are tensors or numbers, at least one a tensor. Up to two `numbers` (may be NULL) are
 * handed to the loop as its user, as elements of the dtype of computing, 8 bytes apart. */
int opscope__elementwise(struct opscope__call *call, const struct opscope__elementwise *spec,
                         const opscope_argument *operands, size_t operand_count,
                         const opscope_argument *numbers, size_t number_count,
                         opscope_tensor **out);

/* The dtype in which tensors and numbers compute together: a tensor of dimensions outweighs one of
 * none, that outweighs a number, unless the lighter one is of a higher category (bool, integers,
 * floats). */
opscope_dtype opscope__dtype_of(const opscope_argument *operands, size_t count, uint32_t apart);

/* A new tensor of those sizes, its memory laid out as that of `like` where that fills its memory
 * without gaps, else contiguous. */
int opscope__empty_like(const opscope_tensor *like, int dims, const int64_t *sizes,
                        opscope_dtype dtype, opscope_tensor **out);

#endif
