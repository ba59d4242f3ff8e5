/* tensor/kernels/parallel.h -- splits a range of work over the fork pool. */
#ifndef OPSCOPE_TENSOR_KERNELS_PARALLEL_H
#define OPSCOPE_TENSOR_KERNELS_PARALLEL_H

#include <stdint.h>

/* The least number of elements of simple work (an addition) that is worth waking a thread. */
enum { OPSCOPE__GRAIN = 32768 };

typedef void (*opscope__part)(int64_t begin, int64_t end, void *arg);

/* Calls part over [0, count), in pieces, on this thread and the pool's; returns when all pieces are
 * done. It uses at most one thread per `grain` elements; a piece is a part of a thread's share. The
 * pieces depend only on the pool's size, not on the number of free threads. */
void opscope__parallel(int64_t count, int64_t grain, opscope__part part, void *arg);

#endif
