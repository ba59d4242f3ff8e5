/* model/graph/verify.c -- whether definitions come before uses, and names are unique. */
#include "model/graph/verify.h"

#include <string.h>

#include "model/graph/memory.h"
#include "model/graph/name_map.h"
#include "model/graph/verifier.h"
#include "opscope/status.h"

static void set_in_scope(const struct opscope__graph_values *values, bool in_scope)
{
    for (uint32_t i = 0; i < values->count; i++) {
        values->at[i]->in_scope = in_scope;
    }
}

static void leave_scope(const struct opscope__graph_block *block)
{
    set_in_scope(&block->inputs, false);
    for (const struct opscope__graph_node *node = block->first; node != NULL; node = node->next) {
        set_in_scope(&node->outputs, false);
    }
}

/* Values of other graphs are never in scope here: verify_links.c has found them. */
static int check_uses(const struct opscope__graph_uses *uses,
                      const struct opscope__graph_node *place)
{
    for (uint32_t i = 0; i < uses->count; i++) {
        if (!uses->at[i].value->in_scope) {
            return opscope__graph_verify_fail(place, "%s is used where it is not defined",
                                              opscope__graph_value_label(uses->at[i].value).text);
        }
    }
    return OPSCOPE_OK;
}

static int check_names(struct opscope__graph_name_map *names,
                       const struct opscope__graph_values *values,
                       const struct opscope__graph_node *place)
{
    for (uint32_t i = 0; i < values->count; i++) {
        struct opscope__graph_value *value = values->at[i];
        size_t bytes = value->name != NULL ? strlen(value->name) : 0;
        if (bytes > 0 && opscope__graph_name_map_find(names, value->name, bytes) != NULL) {
            return opscope__graph_verify_fail(place, "%s is the name of two values",
                                              opscope__graph_value_label(value).text);
        }
        if (bytes > 0 && !opscope__graph_name_map_add(names, value->name, bytes, value)) {
            return opscope__graph_failed();
        }
    }
    return OPSCOPE_OK;
}

static int check_block(struct opscope__graph_name_map *names,
                       const struct opscope__graph_block *block);

static int check_node(struct opscope__graph_name_map *names, const struct opscope__graph_node *node)
{
    int status = check_uses(&node->inputs, node);
    if (status == OPSCOPE_OK) {
        status = check_names(names, &node->outputs, node);
    }
    for (uint32_t i = 0; status == OPSCOPE_OK && i < node->block_count; i++) {
        status = check_block(names, node->blocks[i]);
    }
    set_in_scope(&node->outputs, true);
    return status == OPSCOPE_OK ? opscope__graph_verify_kind(node) : status;
}

static int check_block(struct opscope__graph_name_map *names,
                       const struct opscope__graph_block *block)
{
    int status = check_names(names, &block->inputs, block->owner);
    set_in_scope(&block->inputs, true);
    for (const struct opscope__graph_node *node = block->first;
         status == OPSCOPE_OK && node != NULL; node = node->next) {
        status = check_node(names, node);
    }
    if (status == OPSCOPE_OK) {
        status = check_uses(&block->outputs, block->owner);
    }
    leave_scope(block);
    return status;
}

int opscope__graph_verify(struct opscope__model_graph *graph)
{
    struct opscope__graph_name_map names = {0};
    opscope__graph_number(graph);
    int status = opscope__graph_verify_links(graph);
    if (status == OPSCOPE_OK) {
        status = check_block(&names, graph->body);
    }
    opscope__graph_name_map_free(&names);
    return status;
}
