/* tensor/large.h -- large blocks of memory: whole pages from the system, some of them kept when
 * they are given back.
 *
 * The first touch of a page costs more than adding the numbers in it, and an operator's result is
 * mostly given back before the next of its size is asked for. What is kept is bounded. Blocks are
 * aligned to pages; from 4 MiB on they lie in huge pages where the system has some. Any thread.
 */
#ifndef OPSCOPE_TENSOR_LARGE_H
#define OPSCOPE_TENSOR_LARGE_H

#include <stddef.h>

enum { OPSCOPE__LARGE_LEAST = 128 * 1024 }; /* smaller blocks are tensor/block.h's */

/* NULL where memory runs out. */
void *opscope__large_take(size_t bytes);
/* `bytes` as in take. */
void opscope__large_give(void *data, size_t bytes);

#endif
