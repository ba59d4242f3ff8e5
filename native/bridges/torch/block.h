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

/* What the calling thread's innermost call of the operator that begins blocks is about. A mode
 * calls the operator again, within the call, for the same block. PyTorch then begins and ends
 * ranges around the inner call, in which it begins the block's range. So that one is left out, and
 * the block followed here, from the outer call on. */
struct opscope__torch_block_call {
    const void *name;     /* of the block; NULL: no such call runs now */
    uint64_t began_ticks; /* when the block began in an inner call; 0: there was none */
    bool is_again;        /* the call is such an inner one */
    bool has_left;        /* a callback has left out the range */
};
extern _Thread_local struct opscope__torch_block_call opscope__torch_block_call;

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
