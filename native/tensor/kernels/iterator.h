/* tensor/kernels/iterator.h -- up to four operands, with any strides, that iterate.h walks
 * together.
 *
 * The shape is that of the first operand; the others broadcast to it with strides of zero. The
 * iterator orders dimensions such that it moves forward in memory, and merges them if possible; an
 * inner loop then gets one stride for each operand.
 */
#ifndef OPSCOPE_TENSOR_KERNELS_ITERATOR_H
#define OPSCOPE_TENSOR_KERNELS_ITERATOR_H

#include "tensor/core/operator.h" /* opscope__loop */
#include "tensor/core/tensor.h"

enum { OPSCOPE__OPERAND_LIMIT = 4 };

struct opscope__iterator {
    int dims;
    int operands;
    bool is_even; /* every operand so far is contiguous and has the full shape */
    int64_t count;
    char *data[OPSCOPE__OPERAND_LIMIT];
    int64_t item[OPSCOPE__OPERAND_LIMIT]; /* bytes of an element */
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    int64_t strides[OPSCOPE_DIM_LIMIT][OPSCOPE__OPERAND_LIMIT]; /* bytes; dimension 0 outermost */
};

void opscope__iterator_start(struct opscope__iterator *it, int dims, const int64_t *sizes);
/* The operand must broadcast to the shape; the caller checks this. */
void opscope__iterator_add(struct opscope__iterator *it, const opscope_tensor *tensor);
/* Adds an operand with one value for all elements. */
void opscope__iterator_add_value(struct opscope__iterator *it, void *value);
/* Exchanges two dimensions. */
void opscope__iterator_swap(struct opscope__iterator *it, int a, int b);
/* Orders and merges the dimensions; opscope__iterate calls it. */
void opscope__iterator_merge(struct opscope__iterator *it);

#endif
