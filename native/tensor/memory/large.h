/* tensor/memory/large.h -- large blocks of memory: whole pages from the system, some of which are
 * kept after their release.
 *
 * The first access to a page costs more than adding the numbers in it, and programs usually release
 * an operator's result before they request the next block of its size. The memory kept is bounded.
 * Blocks are aligned to pages; from 4 MiB on they lie in huge pages if the system has some. Any
 * thread.
 */
#ifndef OPSCOPE_TENSOR_MEMORY_LARGE_H
#define OPSCOPE_TENSOR_MEMORY_LARGE_H

#include <stddef.h>

enum { OPSCOPE__LARGE_LEAST = 128 * 1024 }; /* tensor/memory/block.h has smaller blocks */

/* NULL if memory runs out. */
void *opscope__large_take(size_t bytes);
/* `bytes` as in take. */
void opscope__large_give(void *data, size_t bytes);

#endif
