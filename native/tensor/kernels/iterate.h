/* tensor/kernels/iterate.h -- walking the operands of an iterator, on several threads where that
 * pays.
 *
 *     struct opscope__iterator it;
 *     opscope__iterator_start(&it, dims, sizes);
 *     opscope__iterator_add(&it, out);
 *     opscope__iterator_add(&it, a);
 *     opscope__iterate(&it, loop, user, 1);
 */
#ifndef OPSCOPE_TENSOR_KERNELS_ITERATE_H
#define OPSCOPE_TENSOR_KERNELS_ITERATE_H

#include "tensor/kernels/iterator.h"

/* `cost` is what an element costs in additions; it decides about threads. */
void opscope__iterate(struct opscope__iterator *it, opscope__loop loop, void *user, int64_t cost);

#endif
