/* model/graph/attribute.c -- names of values; attributes, locations and scopes of nodes. */
#include <string.h>

#include "model/graph/graph.h"
#include "model/graph/memory.h"
#include "model/graph/name.h"
#include "opscope/status.h"
#include "opscope/tensor.h"

static int set_text(struct opscope__model_graph *graph, const char **out, const char *text,
                    size_t bytes)
{
    const char *copy = opscope__graph_copy(graph, text, bytes);
    if (copy == NULL) {
        return opscope__graph_failed();
    }
    *out = copy;
    return OPSCOPE_OK;
}

int opscope__graph_set_name(struct opscope__model_graph *graph, struct opscope__graph_value *value,
                            const char *name, size_t bytes)
{
    if (!opscope__graph_is_value_name(name, bytes)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "a value's name that is not of letters, digits, '_' and '.'");
    }
    return set_text(graph, &value->name, name, bytes);
}

int opscope__graph_set_location(struct opscope__graph_node *node, const char *text, size_t bytes)
{
    if (!opscope__graph_is_location(text, bytes)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "a location that is not one line of text");
    }
    return set_text(node->graph, &node->location, text, bytes);
}

int opscope__graph_set_scope(struct opscope__graph_node *node, const char *text, size_t bytes)
{
    if (!opscope__graph_is_scope(text, bytes)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "a scope that is not one word of text");
    }
    return set_text(node->graph, &node->scope, text, bytes);
}

int opscope__graph_set_attribute(struct opscope__graph_node *node, const char *name, size_t bytes,
                                 struct opscope__graph_constant value)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const char *other = node->attributes[i].name;
        if (strlen(other) == bytes && memcmp(other, name, bytes) == 0) {
            node->attributes[i].value = value;
            return OPSCOPE_OK;
        }
    }
    if (!opscope__graph_is_identifier(name, bytes)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "an attribute's name that is not of letters, digits and '_'");
    }
    if (node->attribute_count == OPSCOPE__GRAPH_ATTRIBUTE_LIMIT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "a node of more than %d attributes",
                                   OPSCOPE__GRAPH_ATTRIBUTE_LIMIT);
    }
    struct opscope__graph_attribute *larger =
        opscope__graph_grow(node->graph, node->attributes, node->attribute_count, sizeof *larger);
    if (larger == NULL) {
        return opscope__graph_failed();
    }
    node->attributes = larger;
    struct opscope__graph_attribute *added = &larger[node->attribute_count];
    int status = set_text(node->graph, &added->name, name, bytes);
    if (status == OPSCOPE_OK) {
        added->value = value;
        node->attribute_count++;
    }
    return status;
}

const struct opscope__graph_constant *opscope__graph_attribute(
    const struct opscope__graph_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        if (strcmp(node->attributes[i].name, name) == 0) {
            return &node->attributes[i].value;
        }
    }
    return NULL;
}
