/* model/graph/name_map.h -- values by their names. */
#ifndef OPSCOPE_MODEL_GRAPH_NAME_MAP_H
#define OPSCOPE_MODEL_GRAPH_NAME_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct opscope__graph_value;

struct opscope__graph_name_entry {
    const char *name; /* its owner's */
    size_t bytes;
    struct opscope__graph_value *value; /* NULL: the entry is free */
};

/* All zero: empty. The memory is malloc's. */
struct opscope__graph_name_map {
    struct opscope__graph_name_entry *entries;
    size_t count;
    size_t room; /* a power of two, or 0 */
};

/* NULL: the map has no such name. */
struct opscope__graph_value *opscope__graph_name_map_find(const struct opscope__graph_name_map *map,
                                                          const char *name, size_t bytes);
/* Adds a name that the map does not have. False: out of memory, reported. */
bool opscope__graph_name_map_add(struct opscope__graph_name_map *map, const char *name,
                                 size_t bytes, struct opscope__graph_value *value);
void opscope__graph_name_map_free(struct opscope__graph_name_map *map);

/* FNV-1a: of more bytes behind those of `hash`, which begins as OPSCOPE__GRAPH_HASH_START. */
#define OPSCOPE__GRAPH_HASH_START UINT64_C(0xcbf29ce484222325)
static inline uint64_t opscope__graph_hash(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

#endif
