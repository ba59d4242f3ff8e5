/* tensor/tiles.h -- walking operands whose memory runs in different orders, as a and its transpose
 * do.
 *
 * Walked in the order of one, the other is met at one element of each cache line, over and over. So
 * two dimensions are walked in tiles, and of each tile such an operand is first copied into the
 * order of the others.
 */
#ifndef OPSCOPE_TENSOR_TILES_H
#define OPSCOPE_TENSOR_TILES_H

#include "tensor/iterator.h"

/* Whether a merged iterator, all operands added, is one for tiles; then its last two dimensions are
 * those to be walked so. The first operand, which is written, never needs it: the order is its own.
 */
bool opscope__tiles_gain(struct opscope__iterator *it);
/* As opscope__iterate, for such an iterator. */
void opscope__iterate_tiles(const struct opscope__iterator *it, opscope__loop loop, void *user,
                            int64_t cost);

#endif
