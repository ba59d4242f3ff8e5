/* tensor/reduce.h -- operators that fold dimensions into one number for each place that is left.
 *
 * Accumulators are 8 bytes each, wider than the elements: sums of floats are folded in double. An
 * operator gives small loops over them (ops/folds.h makes them); walking, memory and threads are
 * here. Where the folded dimensions are the ones that lie closely in memory, `rows` folds one
 * accumulator's elements after the other's; else `columns` goes from accumulator to accumulator.
 *
 * Where work is split, it is split by shape alone: results do not depend on the number of threads.
 */
#ifndef OPSCOPE_TENSOR_REDUCE_H
#define OPSCOPE_TENSOR_REDUCE_H

#include "tensor/operator.h"
#include "tensor/tensor.h"

/* Folds `length` elements, `next` bytes apart, into each of `count` accumulators; the first
 * elements of neighbours are `stride` bytes apart. */
typedef void (*opscope__folding)(void *accumulators, const char *data, int64_t stride,
                                 int64_t count, int64_t next, int64_t length);

struct opscope__reduction {
    opscope__folding rows, columns;
    /* Folds accumulators[i] of `more` into accumulators[i]. */
    void (*join)(void *accumulators, const void *more, int64_t count);
    /* Writes accumulator i, of `folded` elements, to element i of the output. */
    void (*finish)(char *out, int64_t stride, const void *accumulators, int64_t count,
                   int64_t folded);
    uint64_t start; /* the accumulator of nothing, as bits */
    int64_t cost;   /* of an element, in additions */
};

/* Sizes with the dimensions of `set` folded: dropped, or 1 where they are kept. Returns how many.
 */
int opscope__reduced_sizes(const opscope_tensor *self, uint32_t set, bool keep, int64_t *sizes);
/* Folds the dimensions of `set` of `self` into a new contiguous tensor of that dtype. */
int opscope__reduce(const struct opscope__reduction *reduction, const opscope_tensor *self,
                    uint32_t set, bool keep, opscope_dtype dtype, opscope_tensor **out);

#endif
