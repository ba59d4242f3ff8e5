/* tensor/iterator.h -- walking up to four operands together, whatever their strides.
 *
 * The shape is that of the first operand; the others broadcast to it with strides of zero.
 * Dimensions are ordered so that memory is walked forward and merged where that is possible; an
 * inner loop then gets one stride for each operand.
 *
 *     struct opscope__iterator it;
 *     opscope__iterator_start(&it, dims, sizes);
 *     opscope__iterator_add(&it, out);
 *     opscope__iterator_add(&it, a);
 *     opscope__iterate(&it, loop, user, 1);
 */
#ifndef OPSCOPE_TENSOR_ITERATOR_H
#define OPSCOPE_TENSOR_ITERATOR_H

#include "tensor/tensor.h"

enum { OPSCOPE__OPERAND_LIMIT = 4 };

/* One run: `count` elements of each operand, strides in bytes. */
typedef void (*opscope__loop)(char *const *data, const int64_t *strides, int64_t count, void *user);

struct opscope__iterator {
    int dims;
    int operands;
    bool is_even; /* every operand so far is contiguous and of the full shape */
    int64_t count;
    char *data[OPSCOPE__OPERAND_LIMIT];
    int64_t item[OPSCOPE__OPERAND_LIMIT]; /* bytes of an element */
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    int64_t strides[OPSCOPE_DIM_LIMIT][OPSCOPE__OPERAND_LIMIT]; /* bytes; dimension 0 outermost */
};

void opscope__iterator_start(struct opscope__iterator *it, int dims, const int64_t *sizes);
/* The operand broadcasts to the shape; that was checked before. */
void opscope__iterator_add(struct opscope__iterator *it, const opscope_tensor *tensor);
/* One value for all elements. */
void opscope__iterator_add_value(struct opscope__iterator *it, void *value);
/* Lets two dimensions change places. */
void opscope__iterator_swap(struct opscope__iterator *it, int a, int b);
/* Orders and merges the dimensions; called by iterate. */
void opscope__iterator_merge(struct opscope__iterator *it);
/* `cost` is what an element costs in additions; it decides about threads. */
void opscope__iterate(struct opscope__iterator *it, opscope__loop loop, void *user, int64_t cost);

#endif
