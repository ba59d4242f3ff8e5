/* model/graph/uses.c -- which values nodes take and blocks return. */
#include "model/graph/graph.h"
#include "model/graph/memory.h"
#include "opscope/status.h"

static void link_use(struct opscope__graph_use *use, struct opscope__graph_value *value)
{
    use->value = value;
    use->previous = NULL;
    use->next = value->first_use;
    if (use->next != NULL) {
        use->next->previous = use;
    }
    value->first_use = use;
}

static void unlink_use(struct opscope__graph_use *use)
{
    *(use->previous != NULL ? &use->previous->next : &use->value->first_use) = use->next;
    if (use->next != NULL) {
        use->next->previous = use->previous;
    }
}

static int set_uses(struct opscope__model_graph *graph, struct opscope__graph_uses *uses,
                    struct opscope__graph_use user, struct opscope__graph_value *const *values,
                    size_t count)
{
    struct opscope__graph_use *at = uses->at;
    if (count > uses->count) {
        at = opscope__graph_memory(graph, count * sizeof *at);
        if (at == NULL) {
            return opscope__graph_failed();
        }
    }
    for (uint32_t i = 0; i < uses->count; i++) {
        unlink_use(&uses->at[i]);
    }
    for (size_t i = 0; i < count; i++) {
        at[i] = user;
        link_use(&at[i], values[i]);
    }
    uses->at = at;
    uses->count = (uint32_t)count;
    return OPSCOPE_OK;
}

int opscope__graph_set_inputs(struct opscope__graph_node *node,
                              struct opscope__graph_value *const *values, size_t count)
{
    return set_uses(node->graph, &node->inputs, (struct opscope__graph_use){.node = node}, values,
                    count);
}

int opscope__graph_set_outputs(struct opscope__graph_block *block,
                               struct opscope__graph_value *const *values, size_t count)
{
    return set_uses(block->graph, &block->outputs, (struct opscope__graph_use){.block = block},
                    values, count);
}

void opscope__graph_replace_use(struct opscope__graph_use *use, struct opscope__graph_value *value)
{
    unlink_use(use);
    link_use(use, value);
}

void opscope__graph_replace_uses(struct opscope__graph_value *old,
                                 struct opscope__graph_value *value)
{
    while (old != value && old->first_use != NULL) {
        opscope__graph_replace_use(old->first_use, value);
    }
}
