/* model/graph/verify_links.c -- whether nodes, blocks, values and uses know each other.
 *
 * Each use is found in the list of its value by its neighbours. The lists may then contain no more
 * uses than there are.
 */
#include "model/graph/verifier.h"
#include "opscope/status.h"

struct count {
    uint64_t uses;   /* inputs of nodes, values that blocks return */
    uint64_t listed; /* in the lists of values */
};

static bool is_listed(const struct opscope__graph_use *use)
{
    return use->value != NULL &&
           (use->previous != NULL ? use->previous->next : use->value->first_use) == use &&
           (use->next == NULL || (use->next->previous == use && use->next->value == use->value));
}

static int check_uses(const struct opscope__graph_uses *uses,
                      const struct opscope__graph_node *node,
                      const struct opscope__graph_block *block, struct count *count)
{
    const struct opscope__graph_node *place = node != NULL ? node : block->owner;
    count->uses += uses->count;
    for (uint32_t i = 0; i < uses->count; i++) {
        const struct opscope__graph_use *use = &uses->at[i];
        if (use->node != node || use->block != block) {
            return opscope__graph_verify_fail(place, "use %u is of another node or block", i);
        }
        if (!is_listed(use)) {
            return opscope__graph_verify_fail(place, "the value of use %u does not know of it", i);
        }
    }
    return OPSCOPE_OK;
}

static int check_values(const struct opscope__graph_values *values,
                        const struct opscope__graph_node *node,
                        const struct opscope__graph_block *block, struct count *count)
{
    const struct opscope__graph_node *place = node != NULL ? node : block->owner;
    for (uint32_t i = 0; i < values->count; i++) {
        const struct opscope__graph_value *value = values->at[i];
        if (value->node != node || value->block != block || value->index != i) {
            return opscope__graph_verify_fail(place, "%s is produced elsewhere",
                                              opscope__graph_value_label(value).text);
        }
        if (value->type == NULL) {
            return opscope__graph_verify_fail(place, "%s has no type",
                                              opscope__graph_value_label(value).text);
        }
        for (const struct opscope__graph_use *use = value->first_use; use != NULL;
             use = use->next) {
            if (use->value != value || !is_listed(use)) {
                return opscope__graph_verify_fail(place, "a use of %s is of another value",
                                                  opscope__graph_value_label(value).text);
            }
            count->listed++;
        }
    }
    return OPSCOPE_OK;
}

static int check_block(const struct opscope__graph_block *block, struct count *count);

static int check_node(const struct opscope__graph_node *node,
                      const struct opscope__graph_block *block, struct count *count)
{
    if (node->block != block || node->graph != block->graph ||
        (node->previous != NULL ? node->previous->next : block->first) != node ||
        (node->next != NULL ? node->next->previous : block->last) != node) {
        return opscope__graph_verify_fail(node, "it is not where its block has it");
    }
    int status = check_uses(&node->inputs, node, NULL, count);
    if (status == OPSCOPE_OK) {
        status = check_values(&node->outputs, node, NULL, count);
    }
    for (uint32_t i = 0; status == OPSCOPE_OK && i < node->block_count; i++) {
        const struct opscope__graph_block *inner = node->blocks[i];
        if (inner->owner != node || inner->depth != block->depth + 1 ||
            inner->graph != block->graph) {
            return opscope__graph_verify_fail(node, "its block %u is another node's", i);
        }
        status = check_block(inner, count);
    }
    return status;
}

static int check_block(const struct opscope__graph_block *block, struct count *count)
{
    int status = check_values(&block->inputs, NULL, block, count);
    for (const struct opscope__graph_node *node = block->first;
         status == OPSCOPE_OK && node != NULL; node = node->next) {
        status = check_node(node, block, count);
    }
    return status == OPSCOPE_OK ? check_uses(&block->outputs, NULL, block, count) : status;
}

int opscope__graph_verify_links(struct opscope__model_graph *graph)
{
    struct count count = {0};
    int status = check_block(graph->body, &count);
    if (status == OPSCOPE_OK && count.uses != count.listed) {
        return opscope__graph_verify_fail(
            NULL, "it uses values %llu times, its values know of %llu uses",
            (unsigned long long)count.uses, (unsigned long long)count.listed);
    }
    return status;
}
