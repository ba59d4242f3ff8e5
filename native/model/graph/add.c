/* model/graph/add.c -- a graph's life; nodes, values and blocks are added to it. */
#include "model/graph/graph.h"

#include <stdlib.h>

#include "model/graph/memory.h"
#include "model/graph/name.h"
#include "model/graph/node_list.h"
#include "opscope/tensor.h"

static struct opscope__graph_block *new_block(struct opscope__model_graph *graph,
                                              struct opscope__graph_node *owner, uint32_t depth)
{
    struct opscope__graph_block *block = opscope__graph_memory(graph, sizeof *block);
    if (block != NULL) {
        *block = (struct opscope__graph_block){.graph = graph, .owner = owner, .depth = depth};
    }
    return block;
}

struct opscope__model_graph *opscope__graph_new(size_t bytes_limit)
{
    struct opscope__model_graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL) {
        opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    graph->bytes_limit = bytes_limit;
    graph->body = new_block(graph, NULL, 1);
    if (graph->body == NULL) {
        opscope__graph_release(graph);
        return NULL;
    }
    return graph;
}

void opscope__graph_release(struct opscope__model_graph *graph)
{
    if (graph != NULL) {
        opscope__arena_free(&graph->arena);
        free(graph);
    }
}

static struct opscope__graph_node *add_node(struct opscope__graph_block *block,
                                            struct opscope__graph_node *place, const char *kind,
                                            size_t bytes)
{
    if (!opscope__graph_is_kind(kind, bytes)) {
        opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "a kind that is not \"namespace::name\"");
        return NULL;
    }
    struct opscope__model_graph *graph = block->graph;
    struct opscope__graph_node *node = opscope__graph_memory(graph, sizeof *node);
    const char *copy = node != NULL ? opscope__graph_copy(graph, kind, bytes) : NULL;
    if (copy == NULL) {
        return NULL;
    }
    *node = (struct opscope__graph_node){.graph = graph, .kind = copy};
    opscope__graph_node_link(block, place, node);
    return node;
}

struct opscope__graph_node *opscope__graph_append(struct opscope__graph_block *block,
                                                  const char *kind, size_t bytes)
{
    return add_node(block, NULL, kind, bytes);
}

struct opscope__graph_node *opscope__graph_insert_before(struct opscope__graph_node *place,
                                                         const char *kind, size_t bytes)
{
    return add_node(place->block, place, kind, bytes);
}

static struct opscope__graph_value *add_value(struct opscope__model_graph *graph,
                                              struct opscope__graph_values *values,
                                              const struct opscope__graph_type *type)
{
    struct opscope__graph_value *value = opscope__graph_memory(graph, sizeof *value);
    struct opscope__graph_value **larger =
        value != NULL ? opscope__graph_grow(graph, values->at, values->count, sizeof(void *))
                      : NULL;
    if (larger == NULL) {
        return NULL;
    }
    *value = (struct opscope__graph_value){.type = type, .index = values->count};
    values->at = larger;
    values->at[values->count++] = value;
    return value;
}

struct opscope__graph_value *opscope__graph_add_output(struct opscope__graph_node *node,
                                                       const struct opscope__graph_type *type)
{
    struct opscope__graph_value *value = add_value(node->graph, &node->outputs, type);
    if (value != NULL) {
        value->node = node;
    }
    return value;
}

struct opscope__graph_value *opscope__graph_add_input(struct opscope__graph_block *block,
                                                      const struct opscope__graph_type *type)
{
    struct opscope__graph_value *value = add_value(block->graph, &block->inputs, type);
    if (value != NULL) {
        value->block = block;
    }
    return value;
}

struct opscope__graph_block *opscope__graph_add_block(struct opscope__graph_node *node)
{
    uint32_t depth = node->block->depth + 1;
    if (depth > OPSCOPE__GRAPH_DEPTH_LIMIT) {
        opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "blocks in blocks of more than %d levels",
                            OPSCOPE__GRAPH_DEPTH_LIMIT);
        return NULL;
    }
    struct opscope__graph_block *block = new_block(node->graph, node, depth);
    struct opscope__graph_block **larger =
        block != NULL
            ? opscope__graph_grow(node->graph, node->blocks, node->block_count, sizeof(void *))
            : NULL;
    if (larger == NULL) {
        return NULL;
    }
    node->blocks = larger;
    node->blocks[node->block_count++] = block;
    return block;
}
