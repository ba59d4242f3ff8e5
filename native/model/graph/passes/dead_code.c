/* model/graph/passes/dead_code.c -- removes nodes that nothing needs.
 *
 * From the last node to the first: a use follows the definition, so the uses of a node are removed
 * before the node is judged.
 */
#include "model/graph/passes/dead_code.h"

#include "model/graph/effect.h"
#include "opscope/status.h"

static bool is_used(const struct opscope__graph_node *node)
{
    for (uint32_t i = 0; i < node->outputs.count; i++) {
        if (node->outputs.at[i]->first_use != NULL) {
            return true;
        }
    }
    return false;
}

static size_t clean_block(struct opscope__graph_block *block)
{
    size_t removed = 0;
    struct opscope__graph_node *previous;
    for (struct opscope__graph_node *node = block->last; node != NULL; node = previous) {
        previous = node->previous;
        if (!is_used(node) && opscope__graph_node_effect(node) == OPSCOPE__GRAPH_PURE &&
            opscope__graph_remove(node) == OPSCOPE_OK) {
            removed++;
            continue;
        }
        for (uint32_t i = 0; i < node->block_count; i++) {
            removed += clean_block(node->blocks[i]);
        }
    }
    return removed;
}

size_t opscope__graph_remove_dead_code(struct opscope__model_graph *graph)
{
    return clean_block(graph->body);
}
