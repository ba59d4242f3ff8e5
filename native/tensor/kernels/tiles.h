/* tensor/kernels/tiles.h -- iterates over operands whose memory layouts have different orders, such
 * as a matrix and its transpose.
 *
 * In the order of one operand, the other would use one element of each cache line at a time.
 * Therefore two dimensions are processed in tiles, and such an operand's part of each tile is first
 * copied into the order of the others.
 */
#ifndef OPSCOPE_TENSOR_KERNELS_TILES_H
#define OPSCOPE_TENSOR_KERNELS_TILES_H

#include "tensor/kernels/iterator.h"

/* True if a merged iterator, with all operands added, benefits from tiles; its last two dimensions
 * are then the tiled ones. The first operand, which is written, never needs it: the order is its
 * own. */
bool opscope__tiles_gain(struct opscope__iterator *it);
/* Like opscope__iterate, for such an iterator. */
void opscope__iterate_tiles(const struct opscope__iterator *it, opscope__loop loop, void *user,
                            int64_t cost);

#endif
