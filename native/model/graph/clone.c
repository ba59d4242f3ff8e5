/* model/graph/clone.c -- copies of graphs and of their nodes. */
#include "model/graph/clone.h"

#include <stdlib.h>
#include <string.h>

#include "model/graph/memory.h"
#include "opscope/status.h"
#include "opscope/tensor.h"

struct clone {
    struct opscope__graph_value **values;
    bool keep_names;
    bool is_same_graph; /* types and constants need no copies */
};

static const struct opscope__graph_type *clone_type(struct opscope__model_graph *graph,
                                                    const struct opscope__graph_type *type)
{
    if (type->kind < OPSCOPE__GRAPH_SIMPLE_COUNT) {
        return opscope__graph_simple_type(type->kind);
    }
    if (type->kind == OPSCOPE__GRAPH_CLASS) {
        return opscope__graph_class_type(graph, type->name, strlen(type->name));
    }
    const struct opscope__graph_type **parts =
        opscope__graph_memory(graph, type->count * sizeof(void *));
    for (uint32_t i = 0; parts != NULL && i < type->count; i++) {
        parts[i] = clone_type(graph, type->parts[i]);
        if (parts[i] == NULL) {
            return NULL;
        }
    }
    return parts != NULL ? opscope__graph_type_of(graph, type->kind, parts, type->count) : NULL;
}

static int clone_constant(struct opscope__model_graph *graph,
                          const struct opscope__graph_constant *from,
                          struct opscope__graph_constant *out)
{
    *out = *from;
    if (from->kind == OPSCOPE__GRAPH_CONSTANT_STRING) {
        return opscope__graph_string(graph, from->as.text, from->count, out);
    }
    if (from->kind != OPSCOPE__GRAPH_CONSTANT_LIST) {
        return OPSCOPE_OK;
    }
    struct opscope__graph_constant *items =
        opscope__graph_memory(graph, from->count * sizeof *items);
    if (items == NULL) {
        return opscope__graph_failed();
    }
    for (uint32_t i = 0; i < from->count; i++) {
        int status = clone_constant(graph, &from->as.items[i], &items[i]);
        if (status != OPSCOPE_OK) {
            return status;
        }
    }
    out->as.items = items;
    return OPSCOPE_OK;
}

/* `made` is the copy of `from`, or NULL after a failure. */
static int see_value(const struct clone *clone, struct opscope__model_graph *graph,
                     const struct opscope__graph_value *from, struct opscope__graph_value *made)
{
    if (made == NULL) {
        return opscope__graph_failed();
    }
    clone->values[from->number] = made;
    return from->name != NULL && clone->keep_names
               ? opscope__graph_set_name(graph, made, from->name, strlen(from->name))
               : OPSCOPE_OK;
}

static const struct opscope__graph_type *type_in(const struct clone *clone,
                                                 struct opscope__model_graph *graph,
                                                 const struct opscope__graph_value *value)
{
    return clone->is_same_graph ? value->type : clone_type(graph, value->type);
}

/* The values that the copies take instead of these; to be freed. */
static struct opscope__graph_value **taken(const struct clone *clone,
                                           const struct opscope__graph_uses *uses)
{
    struct opscope__graph_value **values = calloc((size_t)uses->count + 1, sizeof *values);
    if (values == NULL) {
        opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    for (uint32_t i = 0; i < uses->count; i++) {
        values[i] = clone->values[uses->at[i].value->number];
    }
    return values;
}

static int clone_attributes(const struct clone *clone, const struct opscope__graph_node *from,
                            struct opscope__graph_node *node)
{
    int status = OPSCOPE_OK;
    for (uint32_t i = 0; status == OPSCOPE_OK && i < from->attribute_count; i++) {
        const struct opscope__graph_attribute *attribute = &from->attributes[i];
        struct opscope__graph_constant value = attribute->value;
        if (!clone->is_same_graph) {
            status = clone_constant(node->graph, &attribute->value, &value);
        }
        if (status == OPSCOPE_OK) {
            status =
                opscope__graph_set_attribute(node, attribute->name, strlen(attribute->name), value);
        }
    }
    if (status == OPSCOPE_OK && from->location != NULL) {
        status = opscope__graph_set_location(node, from->location, strlen(from->location));
    }
    if (status == OPSCOPE_OK && from->scope != NULL) {
        status = opscope__graph_set_scope(node, from->scope, strlen(from->scope));
    }
    return status;
}

static int clone_block(const struct clone *clone, const struct opscope__graph_block *from,
                       struct opscope__graph_block *into);

static int clone_node(const struct clone *clone, const struct opscope__graph_node *from,
                      struct opscope__graph_block *into, struct opscope__graph_node *place)
{
    size_t bytes = strlen(from->kind);
    struct opscope__graph_node *node = place != NULL
                                           ? opscope__graph_insert_before(place, from->kind, bytes)
                                           : opscope__graph_append(into, from->kind, bytes);
    struct opscope__graph_value **inputs = node != NULL ? taken(clone, &from->inputs) : NULL;
    if (inputs == NULL) {
        return opscope__graph_failed();
    }
    int status = opscope__graph_set_inputs(node, inputs, from->inputs.count);
    free(inputs);
    if (status == OPSCOPE_OK) {
        status = clone_attributes(clone, from, node);
    }
    for (uint32_t i = 0; status == OPSCOPE_OK && i < from->block_count; i++) {
        struct opscope__graph_block *block = opscope__graph_add_block(node);
        status =
            block != NULL ? clone_block(clone, from->blocks[i], block) : opscope__graph_failed();
    }
    for (uint32_t i = 0; status == OPSCOPE_OK && i < from->outputs.count; i++) {
        const struct opscope__graph_type *type = type_in(clone, node->graph, from->outputs.at[i]);
        status = see_value(clone, node->graph, from->outputs.at[i],
                           type != NULL ? opscope__graph_add_output(node, type) : NULL);
    }
    return status;
}

static int clone_list(const struct clone *clone, const struct opscope__graph_block *from,
                      struct opscope__graph_block *into, struct opscope__graph_node *place)
{
    int status = OPSCOPE_OK;
    /* In one graph, the copies may stand in the list that is copied. */
    const struct opscope__graph_node *last = from->last;
    for (const struct opscope__graph_node *node = from->first; status == OPSCOPE_OK && node != NULL;
         node = node != last ? node->next : NULL) {
        status = clone_node(clone, node, into, place);
    }
    return status;
}

static int clone_block(const struct clone *clone, const struct opscope__graph_block *from,
                       struct opscope__graph_block *into)
{
    int status = OPSCOPE_OK;
    for (uint32_t i = 0; status == OPSCOPE_OK && i < from->inputs.count; i++) {
        const struct opscope__graph_type *type = type_in(clone, into->graph, from->inputs.at[i]);
        status = see_value(clone, into->graph, from->inputs.at[i],
                           type != NULL ? opscope__graph_add_input(into, type) : NULL);
    }
    if (status == OPSCOPE_OK) {
        status = clone_list(clone, from, into, NULL);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    struct opscope__graph_value **outputs = taken(clone, &from->outputs);
    if (outputs == NULL) {
        return opscope__graph_failed();
    }
    status = opscope__graph_set_outputs(into, outputs, from->outputs.count);
    free(outputs);
    return status;
}

int opscope__graph_clone_nodes(const struct opscope__graph_block *from,
                               struct opscope__graph_block *into, struct opscope__graph_node *place,
                               struct opscope__graph_value **values, bool keep_names)
{
    const struct clone clone = {values, keep_names, from->graph == into->graph};
    return clone_list(&clone, from, into, place);
}

struct opscope__model_graph *opscope__graph_clone(struct opscope__model_graph *graph)
{
    struct opscope__model_graph *made = opscope__graph_new(graph->bytes_limit);
    if (made == NULL) {
        return NULL;
    }
    const struct clone clone = {calloc((size_t)opscope__graph_number(graph) + 1, sizeof(void *)),
                                true, false};
    int status = clone.values != NULL ? clone_block(&clone, graph->body, made->body)
                                      : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    free(clone.values);
    if (status != OPSCOPE_OK) {
        opscope__graph_release(made);
        return NULL;
    }
    return made;
}
