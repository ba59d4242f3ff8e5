/* tensor/kernels/stream.h -- results written past the caches.
 *
 * A store first reads the line of memory that it changes into the caches. A result that is larger
 * than they are has left them before its next use, so its stores go to memory directly: an addition
 * of 30e6 float32 takes a third less time.
 */
#ifndef OPSCOPE_TENSOR_KERNELS_STREAM_H
#define OPSCOPE_TENSOR_KERNELS_STREAM_H

#include <stdbool.h>

#include "tensor/kernels/iterator.h"

/* Whether an iterator, with all operands added and merged, writes such a result. `cost` is that of
 * an element, in additions. False in place, where the lines are in the cache already. */
bool opscope__stream_pays(const struct opscope__iterator *it, int64_t cost);
/* Like loop(data, strides, count, user), of that many operands with the result, which is written
 * past the caches. */
void opscope__stream(opscope__loop loop, int operands, char *const *data, const int64_t *strides,
                     int64_t count, void *user);

#endif
