/* tensor/block.h -- small blocks of memory, kept by the thread that gave them back.
 *
 * Tensors, storages and tiny data come and go with every operator; taking a block is a few
 * instructions. Blocks are aligned to 64 bytes. A block may be given back on any thread.
 */
#ifndef OPSCOPE_TENSOR_BLOCK_H
#define OPSCOPE_TENSOR_BLOCK_H

#include <stddef.h>

/* Under AddressSanitizer a kept block would hide its use after release. */
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

/* NULL where memory runs out. Above OPSCOPE__BLOCK_LIMIT bytes nothing is kept. */
void *opscope__block_take(size_t bytes);
/* `bytes` as in take. */
void opscope__block_give(void *block, size_t bytes);

#endif
