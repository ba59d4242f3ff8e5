/* model/program/last_use.c -- where values are used last. */
#include "model/program/emit.h"

const struct opscope__graph_node opscope__block_end;

bool opscope__type_is_held(const struct opscope__graph_type *type)
{
    switch ((enum opscope__graph_type_kind)type->kind) {
    case OPSCOPE__GRAPH_INT:
    case OPSCOPE__GRAPH_FLOAT:
    case OPSCOPE__GRAPH_BOOL:
    case OPSCOPE__GRAPH_NONE:
    case OPSCOPE__GRAPH_DTYPE:
        return false;
    default:
        return true;
    }
}

/* A use by `node`, or, if it is NULL, as what `block` returns. Seen from the block that the value
 * is of, the node around it uses the value. */
static void see(struct opscope__emitter *emitter, const struct opscope__graph_value *value,
                const struct opscope__graph_node *node, const struct opscope__graph_block *block)
{
    const struct opscope__graph_block *home =
        value->node != NULL ? value->node->block : value->block;
    while (block != home) {
        node = block->owner;
        block = node->block;
    }
    emitter->last_use[value->number] = node != NULL ? node : &opscope__block_end;
}

/* In the order of the text, so that what is seen last is the last use. */
static void visit(struct opscope__emitter *emitter, const struct opscope__graph_block *block)
{
    for (const struct opscope__graph_node *node = block->first; node != NULL; node = node->next) {
        for (uint32_t i = 0; i < node->inputs.count; i++) {
            see(emitter, node->inputs.at[i].value, node, block);
        }
        for (uint32_t i = 0; i < node->block_count; i++) {
            visit(emitter, node->blocks[i]);
        }
    }
    for (uint32_t i = 0; i < block->outputs.count; i++) {
        see(emitter, block->outputs.at[i].value, NULL, block);
    }
}

void opscope__find_last_uses(struct opscope__emitter *emitter)
{
    visit(emitter, emitter->graph->body);
}
