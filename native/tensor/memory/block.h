/* tensor/memory/block.h -- small blocks of memory, kept by the thread that released them.
 *
 * Every operator allocates and frees tensors, storages and small data; taking a block takes a few
 * instructions. Blocks are aligned to 64 bytes. Any thread may release a block.
 */
#ifndef OPSCOPE_TENSOR_MEMORY_BLOCK_H
#define OPSCOPE_TENSOR_MEMORY_BLOCK_H

#include <stddef.h>

/* AddressSanitizer would not detect a use after release of a kept block. */
#if defined(__SANITIZE_ADDRESS__)
#define OPSCOPE__KEEPS_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OPSCOPE__KEEPS_MEMORY 0
#endif
#endif
#ifndef OPSCOPE__KEEPS_MEMORY
#define OPSCOPE__KEEPS_MEMORY 1
#endif

enum { OPSCOPE__BLOCK_ALIGNMENT = 64, OPSCOPE__BLOCK_LIMIT = 512 };

/* NULL if memory runs out. Blocks above OPSCOPE__BLOCK_LIMIT bytes are not kept. */
void *opscope__block_take(size_t bytes);
/* `bytes` as in take. */
void opscope__block_give(void *block, size_t bytes);

#endif
