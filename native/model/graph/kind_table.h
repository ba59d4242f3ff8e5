/* model/graph/kind_table.h -- tables of kinds of nodes. */
#ifndef OPSCOPE_MODEL_GRAPH_KIND_TABLE_H
#define OPSCOPE_MODEL_GRAPH_KIND_TABLE_H

#include <stdbool.h>
#include <string.h>

/* Whether a table, which NULL ends, has the kind. An overload's name, which follows a dot, does not
 * count. What the table says of aten::NAME, it says of core::NAME too. */
static inline bool opscope__graph_kind_is_in(const char *kind, const char *const *table)
{
    static const char core[] = "core::", aten[] = "aten::";
    size_t bytes = strcspn(kind, "."), same = sizeof core - 1;
    bool is_core = strncmp(kind, core, same) == 0;
    for (; *table != NULL; table++) {
        bool is_there = is_core ? strncmp(*table, aten, same) == 0 && strlen(*table) == bytes &&
                                      memcmp(*table + same, kind + same, bytes - same) == 0
                                : strlen(*table) == bytes && memcmp(*table, kind, bytes) == 0;
        if (is_there) {
            return true;
        }
    }
    return false;
}

#endif
