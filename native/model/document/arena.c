/* model/document/arena.c -- memory that is freed all at once.
 *
 * Chunks grow with the arena, so that a small document costs little, a large one few allocations,
 * and at most a quarter of the memory is unused.
 */
#include "model/document/arena.h"

#include <stdint.h>
#include <stdlib.h>

enum { ALIGNMENT = 8, FIRST_BYTES = 1 << 10, LARGEST_BYTES = 1 << 20 };

struct opscope__arena_chunk {
    struct opscope__arena_chunk *older;
    uint64_t memory[];
};

static size_t chunk_bytes(const struct opscope__arena *arena)
{
    size_t bytes = arena->bytes / 4;
    return bytes < FIRST_BYTES ? FIRST_BYTES : bytes > LARGEST_BYTES ? LARGEST_BYTES : bytes;
}

void *opscope__arena_take(struct opscope__arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) {
        return NULL;
    }
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (bytes > arena->free_bytes) {
        size_t usual = chunk_bytes(arena), room = bytes > usual / 2 ? bytes : usual;
        struct opscope__arena_chunk *chunk = malloc(sizeof *chunk + room);
        if (chunk == NULL) {
            return NULL;
        }
        chunk->older = arena->newest;
        arena->newest = chunk;
        arena->bytes += sizeof *chunk + room;
        /* A large block gets a chunk of its own; what is left of the last one is still used. */
        if (room == bytes) {
            return chunk->memory;
        }
        arena->free = (char *)chunk->memory;
        arena->free_bytes = room;
    }
    char *taken = arena->free;
    arena->free += bytes;
    arena->free_bytes -= bytes;
    return taken;
}

void opscope__arena_free(struct opscope__arena *arena)
{
    while (arena->newest != NULL) {
        struct opscope__arena_chunk *chunk = arena->newest;
        arena->newest = chunk->older;
        free(chunk);
    }
    *arena = (struct opscope__arena){0};
}
