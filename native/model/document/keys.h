/* model/document/keys.h -- the keys of a MAP in sorted order, for lookup and to find doubles.
 *
 * Sorting needs no hash, so no input can make it slow by collisions. The order lies behind the
 * pairs in memory: the index of the pair with the smallest key, of the next one, and so on.
 */
#ifndef OPSCOPE_MODEL_KEYS_H
#define OPSCOPE_MODEL_KEYS_H

#include "model/document/document.h"

/* Less, equal or greater than 0. Equal: both are the same NONE, BOOL, INT or TEXT. Keys of other
 * kinds are in no order among each other. */
int opscope__keys_compare(const struct opscope__item *a, const struct opscope__item *b);

/* Replaces the pairs by a copy with the order behind it. Fails for a key that is there twice. */
int opscope__keys_sort(struct opscope__document *document, struct opscope__pair **pairs,
                       size_t count);

static inline const uint32_t *opscope__keys_order(const struct opscope__pair *pairs, size_t count)
{
    return (const uint32_t *)(pairs + count);
}

#endif
