/* model/graph/name_map.c -- values by their names: open addressing, at most half full.
 *
 * The hash begins with the address of the table, which the author of a text cannot know: no text
 * can be made of names that all belong in one place.
 */
#include "model/graph/name_map.h"

#include <stdlib.h>
#include <string.h>

#include "opscope/tensor.h"

/* The entry of that name, or the free one where it belongs. */
static struct opscope__graph_name_entry *find(const struct opscope__graph_name_map *map,
                                              const char *name, size_t bytes)
{
    uint64_t seed = OPSCOPE__GRAPH_HASH_START + (uintptr_t)map->entries;
    uint64_t hash = opscope__graph_hash(seed, name, bytes);
    size_t at = (size_t)(hash ^ hash >> 29 ^ hash >> 47);
    for (;; at++) {
        struct opscope__graph_name_entry *entry = &map->entries[at & (map->room - 1)];
        if (entry->value == NULL ||
            (entry->bytes == bytes && memcmp(entry->name, name, bytes) == 0)) {
            return entry;
        }
    }
}

struct opscope__graph_value *opscope__graph_name_map_find(const struct opscope__graph_name_map *map,
                                                          const char *name, size_t bytes)
{
    return map->room > 0 ? find(map, name, bytes)->value : NULL;
}

static bool grow(struct opscope__graph_name_map *map)
{
    struct opscope__graph_name_map larger = {.count = map->count,
                                             .room = map->room > 0 ? 2 * map->room : 64};
    larger.entries = calloc(larger.room, sizeof *larger.entries);
    if (larger.entries == NULL) {
        opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
        return false;
    }
    for (size_t i = 0; i < map->room; i++) {
        if (map->entries[i].value != NULL) {
            *find(&larger, map->entries[i].name, map->entries[i].bytes) = map->entries[i];
        }
    }
    free(map->entries);
    *map = larger;
    return true;
}

bool opscope__graph_name_map_add(struct opscope__graph_name_map *map, const char *name,
                                 size_t bytes, struct opscope__graph_value *value)
{
    if (2 * map->count >= map->room && !grow(map)) {
        return false;
    }
    *find(map, name, bytes) = (struct opscope__graph_name_entry){name, bytes, value};
    map->count++;
    return true;
}

void opscope__graph_name_map_free(struct opscope__graph_name_map *map)
{
    free(map->entries);
    *map = (struct opscope__graph_name_map){0};
}
