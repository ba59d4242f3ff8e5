/* model/graph/constant.h -- the values of attributes. */
#ifndef OPSCOPE_MODEL_GRAPH_CONSTANT_H
#define OPSCOPE_MODEL_GRAPH_CONSTANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opscope/export.h"

enum { OPSCOPE__GRAPH_CONSTANT_DEPTH_LIMIT = 64 };

enum opscope__graph_constant_kind {
    OPSCOPE__GRAPH_CONSTANT_NONE,
    OPSCOPE__GRAPH_CONSTANT_BOOL,
    OPSCOPE__GRAPH_CONSTANT_INT,
    OPSCOPE__GRAPH_CONSTANT_FLOAT,
    OPSCOPE__GRAPH_CONSTANT_STRING,
    OPSCOPE__GRAPH_CONSTANT_LIST
};

struct opscope__graph_constant {
    uint16_t kind;  /* enum opscope__graph_constant_kind */
    uint16_t depth; /* of a LIST: levels of lists, this one included; else 0 */
    uint32_t count; /* bytes of a STRING; items of a LIST */
    union {
        bool boolean;
        int64_t integer;
        double real;
        const char *text; /* valid UTF-8: `count` bytes and a NUL; may contain others */
        const struct opscope__graph_constant *items;
    } as;
};

struct opscope__model_graph;

/* These copy the text, or the items, into the graph's memory. */
OPSCOPE_API int opscope__graph_string(struct opscope__model_graph *graph, const char *text,
                                      size_t bytes, struct opscope__graph_constant *out);
OPSCOPE_API int opscope__graph_list(struct opscope__model_graph *graph,
                                    const struct opscope__graph_constant *items, size_t count,
                                    struct opscope__graph_constant *out);

/* Floats are equal if all their bits are; NaNs are equal. */
OPSCOPE_API bool opscope__graph_constant_equal(const struct opscope__graph_constant *one,
                                               const struct opscope__graph_constant *other);

#endif
