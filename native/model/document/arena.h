/* model/document/arena.h -- memory that is freed all at once. */
#ifndef OPSCOPE_MODEL_ARENA_H
#define OPSCOPE_MODEL_ARENA_H

#include <stddef.h>

struct opscope__arena_chunk;

/* All zero: empty. */
struct opscope__arena {
    struct opscope__arena_chunk *newest;
    char *free; /* what is left of the chunk */
    size_t free_bytes;
    size_t bytes; /* of all chunks */
};

/* Aligned for pointers, integers and doubles, not cleared; NULL: out of memory. */
void *opscope__arena_take(struct opscope__arena *arena, size_t bytes);
void opscope__arena_free(struct opscope__arena *arena);

#endif
