/* model/graph/constant.c -- the values of attributes. */
#include "model/graph/constant.h"

#include <math.h>
#include <string.h>

#include "model/document/build.h"
#include "model/graph/memory.h"
#include "opscope/status.h"
#include "opscope/tensor.h"

int opscope__graph_string(struct opscope__model_graph *graph, const char *text, size_t bytes,
                          struct opscope__graph_constant *out)
{
    size_t bad;
    if (bytes > UINT32_MAX || !opscope__utf8_check((const uint8_t *)text, bytes, &bad)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "a string that is not UTF-8");
    }
    const char *copy = opscope__graph_copy(graph, text, bytes);
    if (copy == NULL) {
        return opscope__graph_failed();
    }
    *out = (struct opscope__graph_constant){
        .kind = OPSCOPE__GRAPH_CONSTANT_STRING, .count = (uint32_t)bytes, .as.text = copy};
    return OPSCOPE_OK;
}

int opscope__graph_list(struct opscope__model_graph *graph,
                        const struct opscope__graph_constant *items, size_t count,
                        struct opscope__graph_constant *out)
{
    unsigned depth = 1;
    for (size_t i = 0; i < count; i++) {
        depth = items[i].depth + 1u > depth ? items[i].depth + 1u : depth;
    }
    if (depth > OPSCOPE__GRAPH_CONSTANT_DEPTH_LIMIT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "a list of more than %d levels",
                                   OPSCOPE__GRAPH_CONSTANT_DEPTH_LIMIT);
    }
    struct opscope__graph_constant *copy = opscope__graph_memory(graph, count * sizeof *items);
    if (copy == NULL) {
        return opscope__graph_failed();
    }
    if (count > 0) {
        memcpy(copy, items, count * sizeof *items);
    }
    *out = (struct opscope__graph_constant){.kind = OPSCOPE__GRAPH_CONSTANT_LIST,
                                            .depth = (uint16_t)depth,
                                            .count = (uint32_t)count,
                                            .as.items = copy};
    return OPSCOPE_OK;
}

bool opscope__graph_constant_equal(const struct opscope__graph_constant *one,
                                   const struct opscope__graph_constant *other)
{
    if (one->kind != other->kind || one->count != other->count) {
        return false;
    }
    switch (one->kind) {
    case OPSCOPE__GRAPH_CONSTANT_BOOL:
        return one->as.boolean == other->as.boolean;
    case OPSCOPE__GRAPH_CONSTANT_INT:
        return one->as.integer == other->as.integer;
    case OPSCOPE__GRAPH_CONSTANT_FLOAT:
        return memcmp(&one->as.real, &other->as.real, sizeof one->as.real) == 0 ||
               (isnan(one->as.real) && isnan(other->as.real));
    case OPSCOPE__GRAPH_CONSTANT_STRING:
        return memcmp(one->as.text, other->as.text, one->count) == 0;
    case OPSCOPE__GRAPH_CONSTANT_LIST:
        for (uint32_t i = 0; i < one->count; i++) {
            if (!opscope__graph_constant_equal(&one->as.items[i], &other->as.items[i])) {
                return false;
            }
        }
        return true;
    default:
        return true;
    }
}
