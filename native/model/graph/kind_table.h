/* model/graph/kind_table.h -- tables of kinds of nodes. */
#ifndef OPSCOPE_MODEL_GRAPH_KIND_TABLE_H
#define OPSCOPE_MODEL_GRAPH_KIND_TABLE_H

#include <stdbool.h>
#include <string.h>

/* Whether a table, which NULL ends, has the kind. An overload's name, which follows a dot, does not
 * count. */
static inline bool opscope__graph_kind_is_in(const char *kind, const char *const *table)
{
    size_t bytes = strcspn(kind, ".");
    for (; *table != NULL; table++) {
        if (strlen(*table) == bytes && memcmp(*table, kind, bytes) == 0) {
            return true;
        }
    }
    return false;
}

#endif
