/* model/graph/passes/peephole.c -- replaces what a few nodes compute by what they began with.
 *
 * Everywhere:
 * - the parts of a tuple that is constructed in the graph are what it was constructed of;
 * - prim::Unwrap of what is no Optional is its input.
 *
 * In a graph in which no node changes a value, where only nodes take the result:
 * - the items of a list that is constructed in the graph;
 * - core::t twice, and core::transpose twice of the same constant dimensions, are the tensor
 * itself;
 * - core::reshape of core::reshape is one, of the first one's input.
 *
 * Not here, because a result would differ: x * 1 is int64 for a bool x, and -0.0 + 0 is 0.0. What
 * the graph returns is left alone, because the caller could get a tensor of its own and would get
 * the graph's instead.
 */
#include "model/graph/passes/peephole.h"

#include <string.h>

#include "model/graph/effect.h"
#include "model/graph/sharing.h"
#include "opscope/status.h"

struct pass {
    bool may_change; /* a node of the graph may change values */
    size_t changed;
};

static bool is_kind(const struct opscope__graph_node *node, const char *kind)
{
    return node != NULL && strcmp(node->kind, kind) == 0;
}

static struct opscope__graph_value *input(const struct opscope__graph_node *node, uint32_t index)
{
    return index < node->inputs.count ? node->inputs.at[index].value : NULL;
}

/* The node that produces an input; NULL: there is no such input, or a block takes it. */
static struct opscope__graph_node *maker(const struct opscope__graph_node *node, uint32_t index)
{
    return input(node, index) != NULL ? input(node, index)->node : NULL;
}

static void replace(struct pass *pass, struct opscope__graph_value *old,
                    struct opscope__graph_value *value)
{
    if (old->first_use != NULL) {
        opscope__graph_replace_uses(old, value);
        pass->changed++;
    }
}

/* The same for those uses that are inputs of nodes without blocks. */
static void replace_in_nodes(struct pass *pass, struct opscope__graph_value *old,
                             struct opscope__graph_value *value)
{
    bool any = false;
    struct opscope__graph_use *next;
    for (struct opscope__graph_use *use = old->first_use; use != NULL; use = next) {
        next = use->next;
        if (use->node != NULL && use->node->block_count == 0) {
            opscope__graph_replace_use(use, value);
            any = true;
        }
    }
    pass->changed += any;
}

/* Whether two inputs are constants of one int. */
static bool is_same_int(const struct opscope__graph_node *one, uint32_t index,
                        const struct opscope__graph_node *other, uint32_t other_index)
{
    const struct opscope__graph_node *a = maker(one, index), *b = maker(other, other_index);
    if (!is_kind(a, "prim::Constant") || !is_kind(b, "prim::Constant")) {
        return false;
    }
    const struct opscope__graph_constant *first = opscope__graph_attribute(a, "value"),
                                         *second = opscope__graph_attribute(b, "value");
    return first->kind == OPSCOPE__GRAPH_CONSTANT_INT &&
           opscope__graph_constant_equal(first, second);
}

static bool is_transposed_back(const struct opscope__graph_node *node,
                               const struct opscope__graph_node *before)
{
    return (is_same_int(node, 1, before, 1) && is_same_int(node, 2, before, 2)) ||
           (is_same_int(node, 1, before, 2) && is_same_int(node, 2, before, 1));
}

static void visit_parts(struct pass *pass, struct opscope__graph_node *node,
                        const struct opscope__graph_node *before)
{
    if (node->outputs.count != before->inputs.count) {
        return;
    }
    for (uint32_t i = 0; i < node->outputs.count; i++) {
        replace(pass, node->outputs.at[i], before->inputs.at[i].value);
    }
}

static void visit_index(struct pass *pass, struct opscope__graph_node *node,
                        const struct opscope__graph_node *before)
{
    const struct opscope__graph_constant *index = opscope__graph_attribute(node, "index");
    if (index != NULL && index->kind == OPSCOPE__GRAPH_CONSTANT_INT && index->as.integer >= 0 &&
        index->as.integer < before->inputs.count) {
        replace(pass, node->outputs.at[0], before->inputs.at[index->as.integer].value);
    }
}

static int join_reshapes(struct pass *pass, struct opscope__graph_node *node,
                         const struct opscope__graph_node *before)
{
    struct opscope__graph_value *inputs[] = {input(before, 0), input(node, 1)};
    if (node->inputs.count != 2 || before->inputs.count != 2) {
        return OPSCOPE_OK;
    }
    pass->changed++;
    return opscope__graph_set_inputs(node, inputs, 2);
}

/* Whether no memory of the value gets further than to the nodes that take it. */
static bool stays_inside(const struct opscope__graph_value *value)
{
    for (const struct opscope__graph_use *use = value->first_use; use != NULL; use = use->next) {
        if (use->node == NULL || !opscope__graph_is_fresh(use->node)) {
            return false;
        }
    }
    return true;
}

static int visit_node(struct pass *pass, struct opscope__graph_node *node)
{
    struct opscope__graph_node *before = maker(node, 0);
    if (node->outputs.count == 0) {
        return OPSCOPE_OK;
    }
    if (is_kind(node, "prim::TupleUnpack") && is_kind(before, "prim::TupleConstruct")) {
        visit_parts(pass, node, before);
    } else if (is_kind(node, "prim::TupleIndex") && is_kind(before, "prim::TupleConstruct")) {
        visit_index(pass, node, before);
    } else if (is_kind(node, "prim::Unwrap") && node->inputs.count == 1 &&
               opscope__graph_type_equal(input(node, 0)->type, node->outputs.at[0]->type)) {
        replace(pass, node->outputs.at[0], input(node, 0));
    }
    if (pass->may_change || before == NULL) {
        return OPSCOPE_OK;
    }
    if (is_kind(node, "prim::ListUnpack") && is_kind(before, "prim::ListConstruct")) {
        visit_parts(pass, node, before);
    } else if ((is_kind(node, "core::t") && is_kind(before, "core::t")) ||
               (is_kind(node, "core::transpose") && is_kind(before, "core::transpose") &&
                is_transposed_back(node, before))) {
        replace_in_nodes(pass, node->outputs.at[0], input(before, 0));
    } else if (is_kind(node, "core::reshape") && is_kind(before, "core::reshape") &&
               stays_inside(node->outputs.at[0])) {
        return join_reshapes(pass, node, before);
    }
    return OPSCOPE_OK;
}

static int visit_block(struct pass *pass, struct opscope__graph_block *block)
{
    int status = OPSCOPE_OK;
    for (struct opscope__graph_node *node = block->first; status == OPSCOPE_OK && node != NULL;
         node = node->next) {
        status = visit_node(pass, node);
        for (uint32_t i = 0; status == OPSCOPE_OK && i < node->block_count; i++) {
            status = visit_block(pass, node->blocks[i]);
        }
    }
    return status;
}

int opscope__graph_peephole(struct opscope__model_graph *graph, size_t *changed)
{
    struct pass pass = {.may_change =
                            opscope__graph_block_effect(graph->body) == OPSCOPE__GRAPH_CHANGES};
    int status = visit_block(&pass, graph->body);
    *changed = pass.changed;
    return status;
}
