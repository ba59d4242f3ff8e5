/* tensor/kernels/reduce.h -- operators that fold dimensions into one number for each remaining
 * position.
 *
 * Accumulators have 8 bytes each, wider than the elements: sums of floats are folded in double. An
 * operator provides small loops over them (ops/reduce/reduce_loops.h makes them); this code handles
 * iteration, memory and threads. If the folded dimensions are contiguous in memory, `rows` folds
 * all elements of one accumulator after another; otherwise `columns` goes from accumulator to
 * accumulator.
 *
 * Work is split by shape alone, so results do not depend on the number of threads.
 */
#ifndef OPSCOPE_TENSOR_KERNELS_REDUCE_H
#define OPSCOPE_TENSOR_KERNELS_REDUCE_H

#include "tensor/core/operator.h"
#include "tensor/core/tensor.h"

/* Folds `length` elements, `next` bytes apart, into each of `count` accumulators. The first
 * elements of neighbouring accumulators are `stride` bytes apart. */
typedef void (*opscope__folding)(void *accumulators, const char *data, int64_t stride,
                                 int64_t count, int64_t next, int64_t length);

struct opscope__reduction {
    opscope__folding rows, columns;
    /* Folds accumulators[i] of `more` into accumulators[i]. */
    void (*join)(void *accumulators, const void *more, int64_t count);
    /* Writes accumulator i, of `folded` elements, to element i of the output. */
    void (*finish)(char *out, int64_t stride, const void *accumulators, int64_t count,
                   int64_t folded);
    uint64_t start; /* initial value of an accumulator, as bits */
    int64_t cost;   /* of an element, in additions */
};

/* Computes the sizes after folding the dimensions in `set`: they are dropped, or 1 with `keep`.
 * Returns the number of dimensions. */
int opscope__reduced_sizes(const opscope_tensor *self, uint32_t set, bool keep, int64_t *sizes);
/* Folds the dimensions of `self` in `set` into a new contiguous tensor of that dtype. */
int opscope__reduce(const struct opscope__reduction *reduction, const opscope_tensor *self,
                    uint32_t set, bool keep, opscope_dtype dtype, opscope_tensor **out);

#endif
