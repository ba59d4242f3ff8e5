/* model/graph/passes/unroll_loops.c -- replaces short loops by their rounds. */
#include "model/graph/passes/unroll_loops.h"

#include <stdlib.h>
#include <string.h>

#include "model/graph/clone.h"
#include "model/graph/memory.h"
#include "opscope/status.h"
#include "opscope/tensor.h"

static const struct opscope__graph_constant *constant_of(const struct opscope__graph_value *value)
{
    bool is_constant = value->node != NULL && strcmp(value->node->kind, "prim::Constant") == 0;
    return is_constant ? opscope__graph_attribute(value->node, "value") : NULL;
}

static bool is_true(const struct opscope__graph_value *value)
{
    const struct opscope__graph_constant *constant = constant_of(value);
    return constant != NULL && constant->kind == OPSCOPE__GRAPH_CONSTANT_BOOL &&
           constant->as.boolean;
}

static size_t count_nodes(const struct opscope__graph_block *block)
{
    size_t count = 0;
    for (const struct opscope__graph_node *node = block->first; node != NULL; node = node->next) {
        count++;
        for (uint32_t i = 0; i < node->block_count; i++) {
            count += count_nodes(node->blocks[i]);
        }
    }
    return count;
}

/* Whether the loop is unrolled, and into how many rounds. */
static bool is_short(const struct opscope__graph_node *loop, size_t *rounds)
{
    const struct opscope__graph_constant *most = constant_of(loop->inputs.at[0].value);
    const struct opscope__graph_block *block = loop->blocks[0];
    if (most == NULL || most->as.integer > OPSCOPE__UNROLLED_ROUNDS_LIMIT ||
        !is_true(loop->inputs.at[1].value) || !is_true(block->outputs.at[0].value)) {
        return false;
    }
    *rounds = most->as.integer > 0 ? (size_t)most->as.integer : 0;
    return *rounds * count_nodes(block) <= OPSCOPE__UNROLLED_NODES_LIMIT;
}

static struct opscope__graph_value *add_round_number(struct opscope__graph_node *place,
                                                     size_t round)
{
    static const char kind[] = "prim::Constant";
    const struct opscope__graph_constant number = {.kind = OPSCOPE__GRAPH_CONSTANT_INT,
                                                   .as.integer = (int64_t)round};
    struct opscope__graph_node *node = opscope__graph_insert_before(place, kind, sizeof kind - 1);
    if (node == NULL || opscope__graph_set_attribute(node, "value", 5, number) != OPSCOPE_OK) {
        return NULL;
    }
    return opscope__graph_add_output(node, opscope__graph_simple_type(OPSCOPE__GRAPH_INT));
}

/* Puts the rounds before the loop. `values` and `carried` as in unroll. */
static int add_rounds(struct opscope__graph_node *loop, size_t rounds,
                      struct opscope__graph_value **values, struct opscope__graph_value **carried)
{
    const struct opscope__graph_block *block = loop->blocks[0];
    for (size_t round = 0; round < rounds; round++) {
        struct opscope__graph_value *number = add_round_number(loop, round);
        if (number == NULL) {
            return opscope__graph_failed();
        }
        values[block->inputs.at[0]->number] = number;
        for (uint32_t i = 0; i < loop->outputs.count; i++) {
            values[block->inputs.at[i + 1]->number] = carried[i];
        }
        int status = opscope__graph_clone_nodes(block, loop->block, loop, values, false);
        if (status != OPSCOPE_OK) {
            return status;
        }
        for (uint32_t i = 0; i < loop->outputs.count; i++) {
            carried[i] = values[block->outputs.at[i + 1].value->number];
        }
    }
    return OPSCOPE_OK;
}

/* What the copies take for each value that the block uses: outside of it, the value itself. */
static void see_uses(const struct opscope__graph_block *block, struct opscope__graph_value **values)
{
    for (const struct opscope__graph_node *node = block->first; node != NULL; node = node->next) {
        for (uint32_t i = 0; i < node->inputs.count; i++) {
            values[node->inputs.at[i].value->number] = node->inputs.at[i].value;
        }
        for (uint32_t i = 0; i < node->block_count; i++) {
            see_uses(node->blocks[i], values);
        }
    }
    for (uint32_t i = 0; i < block->outputs.count; i++) {
        values[block->outputs.at[i].value->number] = block->outputs.at[i].value;
    }
}

static int unroll(struct opscope__graph_node *loop, size_t rounds)
{
    size_t count = opscope__graph_number(loop->graph);
    struct opscope__graph_value **values = calloc(count + 1, sizeof *values);
    struct opscope__graph_value **carried =
        calloc((size_t)loop->outputs.count + 1, sizeof *carried);
    int status = OPSCOPE_OK;
    if (values == NULL || carried == NULL) {
        status = opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    } else {
        for (uint32_t i = 0; i < loop->outputs.count; i++) {
            carried[i] = loop->inputs.at[i + 2].value;
        }
        see_uses(loop->blocks[0], values);
        status = add_rounds(loop, rounds, values, carried);
    }
    for (uint32_t i = 0; status == OPSCOPE_OK && i < loop->outputs.count; i++) {
        opscope__graph_replace_uses(loop->outputs.at[i], carried[i]);
    }
    free(values);
    free(carried);
    return status == OPSCOPE_OK ? opscope__graph_remove(loop) : status;
}

static int visit_block(struct opscope__graph_block *block, size_t *changed)
{
    int status = OPSCOPE_OK;
    struct opscope__graph_node *next;
    for (struct opscope__graph_node *node = block->first; status == OPSCOPE_OK && node != NULL;
         node = next) {
        size_t rounds;
        next = node->next;
        for (uint32_t i = 0; status == OPSCOPE_OK && i < node->block_count; i++) {
            status = visit_block(node->blocks[i], changed);
        }
        if (status == OPSCOPE_OK && strcmp(node->kind, "prim::Loop") == 0 &&
            is_short(node, &rounds)) {
            status = unroll(node, rounds);
            *changed += status == OPSCOPE_OK;
        }
    }
    return status;
}

int opscope__graph_unroll_loops(struct opscope__model_graph *graph, size_t *changed)
{
    *changed = 0;
    return visit_block(graph->body, changed);
}
