/* torch/block.h -- record_function blocks, as torch/python/blocks.c sees them begin and end. */
#ifndef OPSCOPE_BRIDGES_TORCH_BLOCK_H
#define OPSCOPE_BRIDGES_TORCH_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The start, at that reading of the processor's counter, and the end of a block, which any address
 * identifies. They do nothing unless blocks are followed this way, and PyTorch's callbacks leave
 * them out. */
void opscope__torch_block_start(const void *block, const char *name, size_t name_bytes,
                                uint64_t start_ticks);
void opscope__torch_block_end(const void *block);
extern bool opscope__torch_follows_blocks; /* release, acquire: see bridges/torch/attach.c */

#endif
