/* model/graph/type.h -- the types of a graph's values.
 *
 * A type is a tree that never changes. Its memory belongs to the graph it was made for; types
 * without parts are constants of the program.
 */
#ifndef OPSCOPE_MODEL_GRAPH_TYPE_H
#define OPSCOPE_MODEL_GRAPH_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opscope/export.h"

enum {
    OPSCOPE__GRAPH_TYPE_DEPTH_LIMIT = 64,
    /* Types inside one type, counted as often as they are printed. */
    OPSCOPE__GRAPH_TYPE_SIZE_LIMIT = 1 << 16
};

enum opscope__graph_type_kind {
    OPSCOPE__GRAPH_TENSOR,
    OPSCOPE__GRAPH_INT,
    OPSCOPE__GRAPH_FLOAT,
    OPSCOPE__GRAPH_BOOL,
    OPSCOPE__GRAPH_STR,
    OPSCOPE__GRAPH_NONE,
    OPSCOPE__GRAPH_DTYPE,
    OPSCOPE__GRAPH_SIMPLE_COUNT, /* those above have no parts */
    OPSCOPE__GRAPH_LIST = OPSCOPE__GRAPH_SIMPLE_COUNT,
    OPSCOPE__GRAPH_OPTIONAL,
    OPSCOPE__GRAPH_TUPLE,
    OPSCOPE__GRAPH_FUTURE, /* what a task gives */
    OPSCOPE__GRAPH_CLASS   /* of a module */
};

struct opscope__graph_type {
    uint8_t kind;  /* enum opscope__graph_type_kind */
    uint8_t depth; /* levels of types, this one included */
    uint32_t size; /* types that a print of it names, this one included */
    uint32_t count;
    const struct opscope__graph_type *const *parts; /* `count`: of LIST, OPTIONAL and FUTURE one */
    const char *name;                               /* of a CLASS: names separated by dots */
};

struct opscope__model_graph;

/* "Tensor", "int", "List", ...; of a CLASS "class". */
OPSCOPE_API const char *opscope__graph_type_kind_name(enum opscope__graph_type_kind kind);
/* A type without parts. */
OPSCOPE_API const struct opscope__graph_type *opscope__graph_simple_type(
    enum opscope__graph_type_kind kind);
/* A LIST, OPTIONAL, TUPLE or FUTURE. NULL: reported; too deep, too large, or no memory. */
OPSCOPE_API const struct opscope__graph_type *opscope__graph_type_of(
    struct opscope__model_graph *graph, enum opscope__graph_type_kind kind,
    const struct opscope__graph_type *const *parts, size_t count);
/* NULL: reported; not at least two names separated by dots, or no memory. */
OPSCOPE_API const struct opscope__graph_type *opscope__graph_class_type(
    struct opscope__model_graph *graph, const char *name, size_t bytes);
OPSCOPE_API bool opscope__graph_type_equal(const struct opscope__graph_type *one,
                                           const struct opscope__graph_type *other);
/* Whether a value of type `given` is accepted where `wanted` is: the same type, or for an Optional
 * None or what its part accepts. */
OPSCOPE_API bool opscope__graph_type_accepts(const struct opscope__graph_type *wanted,
                                             const struct opscope__graph_type *given);

#endif
