/* tensor/parallel.h -- splitting a range of work over the fork pool. */
#ifndef OPSCOPE_TENSOR_PARALLEL_H
#define OPSCOPE_TENSOR_PARALLEL_H

#include <stdint.h>

/* How many elements of simple work (an addition) make a piece worth a thread's waking. */
enum { OPSCOPE__GRAIN = 32768 };

typedef void (*opscope__part)(int64_t begin, int64_t end, void *arg);

/* Calls part over [0, count), in pieces, on this thread and the pool's; returns when all is done.
 * There are no more threads than shares of `grain`; a piece is a part of a share. Pieces do not
 * depend on how many threads are free, only on the pool's size. */
void opscope__parallel(int64_t count, int64_t grain, opscope__part part, void *arg);

#endif
