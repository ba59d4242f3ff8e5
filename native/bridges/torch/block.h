/* torch/block.h -- record_function blocks, as torch/python/blocks.c sees them begin and end. */
#ifndef OPSCOPE_BRIDGES_TORCH_BLOCK_H
#define OPSCOPE_BRIDGES_TORCH_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opscope/record.h"

/* The operator of a block with that name. */
const opscope_op *opscope__torch_block_op(const char *name, size_t name_bytes);

/* True for a block that PyTorch's own code begins and ends: around an optimizer's step, or a
 * DataLoader's batch. */
static inline bool opscope__torch_is_own_block(const opscope_op *op)
{
    return op->phase == OPSCOPE_OPTIMIZER || op->phase == OPSCOPE_DATA;
}

/* The start, at that reading of the processor's counter, and the end of a block, which any address
 * identifies. Call the first only if PyTorch's callbacks leave the block out. */
void opscope__torch_block_start(const void *block, const opscope_op *op, uint64_t start_ticks);
void opscope__torch_block_end(const void *block);
/* The block is gone, and its end is not known: it is counted as dropped. */
void opscope__torch_block_lose(const void *block);
/* Soon one will begin on this thread, or that one end: fetches what that needs (base/fetch.h). */
void opscope__torch_block_will_begin(void);
void opscope__torch_block_will_end(const void *block);
extern bool opscope__torch_follows_blocks; /* release, acquire: see bridges/torch/attach.c */

#endif
