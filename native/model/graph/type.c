/* model/graph/type.c -- the types of a graph's values. */
#include "model/graph/type.h"

#include <string.h>

#include "model/graph/memory.h"
#include "model/graph/name.h"
#include "opscope/tensor.h"

static const char *const names[] = {
    [OPSCOPE__GRAPH_TENSOR] = "Tensor",     [OPSCOPE__GRAPH_INT] = "int",
    [OPSCOPE__GRAPH_FLOAT] = "float",       [OPSCOPE__GRAPH_BOOL] = "bool",
    [OPSCOPE__GRAPH_STR] = "str",           [OPSCOPE__GRAPH_NONE] = "None",
    [OPSCOPE__GRAPH_DTYPE] = "Dtype",       [OPSCOPE__GRAPH_LIST] = "List",
    [OPSCOPE__GRAPH_OPTIONAL] = "Optional", [OPSCOPE__GRAPH_TUPLE] = "Tuple",
    [OPSCOPE__GRAPH_FUTURE] = "Future",     [OPSCOPE__GRAPH_CLASS] = "class",
};

static const struct opscope__graph_type simple[OPSCOPE__GRAPH_SIMPLE_COUNT] = {
    {.kind = OPSCOPE__GRAPH_TENSOR, .depth = 1, .size = 1},
    {.kind = OPSCOPE__GRAPH_INT, .depth = 1, .size = 1},
    {.kind = OPSCOPE__GRAPH_FLOAT, .depth = 1, .size = 1},
    {.kind = OPSCOPE__GRAPH_BOOL, .depth = 1, .size = 1},
    {.kind = OPSCOPE__GRAPH_STR, .depth = 1, .size = 1},
    {.kind = OPSCOPE__GRAPH_NONE, .depth = 1, .size = 1},
    {.kind = OPSCOPE__GRAPH_DTYPE, .depth = 1, .size = 1},
};

const char *opscope__graph_type_kind_name(enum opscope__graph_type_kind kind)
{
    return names[kind];
}

const struct opscope__graph_type *opscope__graph_simple_type(enum opscope__graph_type_kind kind)
{
    return &simple[kind];
}

const struct opscope__graph_type *opscope__graph_type_of(
    struct opscope__model_graph *graph, enum opscope__graph_type_kind kind,
    const struct opscope__graph_type *const *parts, size_t count)
{
    unsigned depth = 1;
    uint64_t size = 1;
    for (size_t i = 0; i < count; i++) {
        depth = parts[i]->depth + 1u > depth ? parts[i]->depth + 1u : depth;
        size += parts[i]->size;
    }
    if (depth > OPSCOPE__GRAPH_TYPE_DEPTH_LIMIT) {
        opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "a type of more than %d levels",
                            OPSCOPE__GRAPH_TYPE_DEPTH_LIMIT);
        return NULL;
    }
    if (size > OPSCOPE__GRAPH_TYPE_SIZE_LIMIT) {
        opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "a type of more than %d parts",
                            OPSCOPE__GRAPH_TYPE_SIZE_LIMIT);
        return NULL;
    }
    struct opscope__graph_type *type = opscope__graph_memory(graph, sizeof *type);
    const struct opscope__graph_type **copy =
        type != NULL ? opscope__graph_memory(graph, count * sizeof(void *)) : NULL;
    if (copy == NULL) {
        return NULL;
    }
    if (count > 0) {
        memcpy(copy, parts, count * sizeof(void *));
    }
    *type = (struct opscope__graph_type){.kind = (uint8_t)kind,
                                         .depth = (uint8_t)depth,
                                         .size = (uint32_t)size,
                                         .count = (uint32_t)count,
                                         .parts = copy};
    return type;
}

const struct opscope__graph_type *opscope__graph_class_type(struct opscope__model_graph *graph,
                                                            const char *name, size_t bytes)
{
    if (!opscope__graph_is_dotted(name, bytes)) {
        opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "a class without names separated by dots");
        return NULL;
    }
    struct opscope__graph_type *type = opscope__graph_memory(graph, sizeof *type);
    const char *copy = type != NULL ? opscope__graph_copy(graph, name, bytes) : NULL;
    if (copy == NULL) {
        return NULL;
    }
    *type = (struct opscope__graph_type){
        .kind = OPSCOPE__GRAPH_CLASS, .depth = 1, .size = 1, .name = copy};
    return type;
}

bool opscope__graph_type_equal(const struct opscope__graph_type *one,
                               const struct opscope__graph_type *other)
{
    if (one == other) {
        return true;
    }
    if (one->kind != other->kind || one->size != other->size || one->count != other->count) {
        return false;
    }
    if (one->kind == OPSCOPE__GRAPH_CLASS) {
        return strcmp(one->name, other->name) == 0;
    }
    for (uint32_t i = 0; i < one->count; i++) {
        if (!opscope__graph_type_equal(one->parts[i], other->parts[i])) {
            return false;
        }
    }
    return true;
}

bool opscope__graph_type_accepts(const struct opscope__graph_type *wanted,
                                 const struct opscope__graph_type *given)
{
    for (; wanted->kind == OPSCOPE__GRAPH_OPTIONAL; wanted = wanted->parts[0]) {
        if (given->kind == OPSCOPE__GRAPH_NONE || opscope__graph_type_equal(wanted, given)) {
            return true;
        }
    }
    return opscope__graph_type_equal(wanted, given);
}
