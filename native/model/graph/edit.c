/* model/graph/edit.c -- nodes are moved and removed, values numbered. */
#include "model/graph/graph.h"
#include "model/graph/node_list.h"
#include "opscope/status.h"
#include "opscope/tensor.h"

/* Levels of blocks inside a node. */
static uint32_t height(const struct opscope__graph_node *node)
{
    uint32_t highest = 0;
    for (uint32_t i = 0; i < node->block_count; i++) {
        highest = highest > 0 ? highest : 1;
        const struct opscope__graph_node *inner = node->blocks[i]->first;
        for (; inner != NULL; inner = inner->next) {
            uint32_t inside = 1 + height(inner);
            highest = inside > highest ? inside : highest;
        }
    }
    return highest;
}

static void set_depth(struct opscope__graph_node *node, uint32_t depth)
{
    for (uint32_t i = 0; i < node->block_count; i++) {
        node->blocks[i]->depth = depth + 1;
        for (struct opscope__graph_node *inner = node->blocks[i]->first; inner != NULL;
             inner = inner->next) {
            set_depth(inner, depth + 1);
        }
    }
}

int opscope__graph_move_before(struct opscope__graph_node *node, struct opscope__graph_node *place)
{
    for (const struct opscope__graph_node *around = place; around != NULL;
         around = around->block->owner) {
        if (around == node && node != place) {
            return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s moved into itself", node->kind);
        }
    }
    uint32_t depth = place->block->depth;
    if (node == place) {
        return OPSCOPE_OK;
    }
    if (depth != node->block->depth) {
        if (depth + height(node) > OPSCOPE__GRAPH_DEPTH_LIMIT) {
            return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                       "blocks in blocks of more than %d levels",
                                       OPSCOPE__GRAPH_DEPTH_LIMIT);
        }
        set_depth(node, depth);
    }
    opscope__graph_node_unlink(node);
    opscope__graph_node_link(place->block, place, node);
    return OPSCOPE_OK;
}

/* Fewer values need no memory, so this does not fail. */
static void drop_uses(struct opscope__graph_node *node)
{
    (void)opscope__graph_set_inputs(node, NULL, 0);
    for (uint32_t i = 0; i < node->block_count; i++) {
        (void)opscope__graph_set_outputs(node->blocks[i], NULL, 0);
        for (struct opscope__graph_node *inner = node->blocks[i]->first; inner != NULL;
             inner = inner->next) {
            drop_uses(inner);
        }
    }
}

int opscope__graph_remove(struct opscope__graph_node *node)
{
    for (uint32_t i = 0; i < node->outputs.count; i++) {
        if (node->outputs.at[i]->first_use != NULL) {
            return opscope_tensor_fail(
                OPSCOPE_ERROR_VALUE, "%s cannot be removed: its output %u is used", node->kind, i);
        }
    }
    drop_uses(node);
    opscope__graph_node_unlink(node);
    return OPSCOPE_OK;
}

static uint32_t number_values(struct opscope__graph_values *values, uint32_t next)
{
    for (uint32_t i = 0; i < values->count; i++) {
        values->at[i]->number = next++;
    }
    return next;
}

static uint32_t number_block(struct opscope__graph_block *block, uint32_t next)
{
    next = number_values(&block->inputs, next);
    for (struct opscope__graph_node *node = block->first; node != NULL; node = node->next) {
        next = number_values(&node->outputs, next);
        for (uint32_t i = 0; i < node->block_count; i++) {
            next = number_block(node->blocks[i], next);
        }
    }
    return next;
}

uint32_t opscope__graph_number(struct opscope__model_graph *graph)
{
    return number_block(graph->body, 0);
}
