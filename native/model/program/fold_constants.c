/* model/program/fold_constants.c -- computes once what is the same in each run.
 *
 * A pass over graphs; it is here because it runs the kinds py::NAME.
 */
#include "model/program/fold_constants.h"

#include <string.h>

#include "model/graph/effect.h"
#include "model/graph/memory.h"
#include "model/graph/sharing.h"
#include "model/program/lower.h"
#include "opscope/status.h"

/* Longer texts stay to be computed. */
enum { TEXT_BYTES_LIMIT = 1 << 12, HEAP_BYTES_LIMIT = 1 << 20 };

static const struct opscope__graph_constant *constant_of(const struct opscope__graph_value *value)
{
    bool is_constant = value->node != NULL && strcmp(value->node->kind, "prim::Constant") == 0;
    return is_constant ? opscope__graph_attribute(value->node, "value") : NULL;
}

/* ---- kinds py::NAME ----------------------------------------------------------------------------- */

/* False: a list or something that no constant is, or too long. */
static bool to_constant(struct opscope__model_graph *graph, const struct opscope__value *value,
                        struct opscope__graph_constant *out)
{
    const char *name;
    switch ((enum opscope__value_kind)value->kind) {
    case OPSCOPE__VALUE_BOOL:
        *out = (struct opscope__graph_constant){.kind = OPSCOPE__GRAPH_CONSTANT_BOOL,
                                                .as.boolean = value->as.integer != 0};
        return true;
    case OPSCOPE__VALUE_INT:
        *out = (struct opscope__graph_constant){.kind = OPSCOPE__GRAPH_CONSTANT_INT,
                                                .as.integer = value->as.integer};
        return true;
    case OPSCOPE__VALUE_FLOAT:
        *out = (struct opscope__graph_constant){.kind = OPSCOPE__GRAPH_CONSTANT_FLOAT,
                                                .as.real = value->as.real};
        return true;
    case OPSCOPE__VALUE_DTYPE:
        name = opscope_dtype_name((opscope_dtype)value->as.integer);
        return opscope__graph_string(graph, name, strlen(name), out) == OPSCOPE_OK;
    case OPSCOPE__VALUE_TEXT:
        return value->as.text->bytes <= TEXT_BYTES_LIMIT &&
               opscope__graph_string(graph, value->as.text->at, value->as.text->bytes, out) ==
                   OPSCOPE_OK;
    default:
        return false;
    }
}

/* Runs the node; false if it takes no constants, fails, or makes no constant. */
static bool compute(const struct opscope__graph_node *node, struct opscope__graph_constant *out)
{
    const struct opscope__kind *kind;
    struct opscope__heap heap = {.limit_bytes = HEAP_BYTES_LIMIT};
    struct opscope__value inputs[OPSCOPE__KIND_INPUT_LIMIT] = {{0}}, output;
    if (opscope__match_kind(node, &kind) != OPSCOPE_OK) {
        return false;
    }
    uint32_t made = 0;
    bool done = true;
    for (; done && made < node->inputs.count; made += done) {
        const struct opscope__graph_value *value = node->inputs.at[made].value;
        done = opscope__constant_value(&heap, constant_of(value), value->type, &inputs[made]) ==
               OPSCOPE_OK;
    }
    done = done && kind->function(&heap, inputs, &output) == OPSCOPE_OK;
    if (done) {
        done = to_constant(node->graph, &output, out);
        opscope__value_release(&output);
    }
    while (made > 0) {
        opscope__constant_free(&inputs[--made]);
    }
    return done;
}

/* Whether nothing can change a constant list: what takes it only reads it, and keeps no part. */
static bool is_only_read(const struct opscope__graph_value *list)
{
    for (const struct opscope__graph_use *use = list->first_use; use != NULL; use = use->next) {
        bool is_operator = use->node != NULL && opscope_operator_find(use->node->kind) != NULL;
        bool reads = use->node != NULL && strncmp(use->node->kind, "py::", 4) == 0 &&
                     use->node->outputs.count == 1 &&
                     opscope__graph_is_immutable(use->node->outputs.at[0]->type) &&
                     opscope__graph_node_effect(use->node) != OPSCOPE__GRAPH_CHANGES;
        if (!is_operator && !reads) {
            return false;
        }
    }
    return true;
}

static bool takes_constants(const struct opscope__graph_node *node)
{
    for (uint32_t i = 0; i < node->inputs.count; i++) {
        const struct opscope__graph_value *value = node->inputs.at[i].value;
        if (constant_of(value) == NULL ||
            (!opscope__graph_is_immutable(value->type) && !is_only_read(value))) {
            return false;
        }
    }
    return true;
}

/* The type alone says whether a value is None, unless the type is an Optional. */
static bool is_known_none(const struct opscope__graph_node *node,
                          struct opscope__graph_constant *out)
{
    if (strcmp(node->kind, "py::is_none") != 0 || node->inputs.count != 1 ||
        node->inputs.at[0].value->type->kind == OPSCOPE__GRAPH_OPTIONAL) {
        return false;
    }
    *out = (struct opscope__graph_constant){
        .kind = OPSCOPE__GRAPH_CONSTANT_BOOL,
        .as.boolean = node->inputs.at[0].value->type->kind == OPSCOPE__GRAPH_NONE};
    return node->outputs.at[0]->type->kind == OPSCOPE__GRAPH_BOOL;
}

/* The node's only output, the same in each run. A node that would raise has none. */
static bool is_constant(const struct opscope__graph_node *node, struct opscope__graph_constant *out)
{
    return node->outputs.count == 1 && opscope__graph_is_immutable(node->outputs.at[0]->type) &&
           opscope__graph_node_effect(node) != OPSCOPE__GRAPH_CHANGES &&
           (is_known_none(node, out) || (takes_constants(node) && compute(node, out)));
}

static int fold_kind(struct opscope__graph_node *node, size_t *changed)
{
    static const char kind[] = "prim::Constant";
    struct opscope__graph_constant value;
    if (!is_constant(node, &value)) {
        return OPSCOPE_OK;
    }
    struct opscope__graph_node *made = opscope__graph_insert_before(node, kind, sizeof kind - 1);
    struct opscope__graph_value *output =
        made != NULL ? opscope__graph_add_output(made, node->outputs.at[0]->type) : NULL;
    if (output == NULL) {
        return opscope__graph_failed();
    }
    int status = opscope__graph_set_attribute(made, "value", 5, value);
    if (status == OPSCOPE_OK) {
        opscope__graph_replace_uses(node->outputs.at[0], output);
        ++*changed;
        status = opscope__graph_remove(node);
    }
    return status;
}

/* ---- control flow ------------------------------------------------------------------------------- */

static int fold_if(struct opscope__graph_node *node, size_t *changed)
{
    const struct opscope__graph_constant *condition = constant_of(node->inputs.at[0].value);
    if (condition == NULL) {
        return OPSCOPE_OK;
    }
    struct opscope__graph_block *taken = node->blocks[condition->as.boolean ? 0 : 1];
    int status = OPSCOPE_OK;
    while (status == OPSCOPE_OK && taken->first != NULL) {
        status = opscope__graph_move_before(taken->first, node);
    }
    for (uint32_t i = 0; status == OPSCOPE_OK && i < node->outputs.count; i++) {
        opscope__graph_replace_uses(node->outputs.at[i], taken->outputs.at[i].value);
    }
    if (status == OPSCOPE_OK) {
        ++*changed;
        status = opscope__graph_remove(node);
    }
    return status;
}

static int fold_loop(struct opscope__graph_node *node, size_t *changed)
{
    const struct opscope__graph_constant *most = constant_of(node->inputs.at[0].value),
                                         *condition = constant_of(node->inputs.at[1].value);
    bool is_empty =
        (most != NULL && most->as.integer <= 0) || (condition != NULL && !condition->as.boolean);
    if (!is_empty) {
        return OPSCOPE_OK;
    }
    for (uint32_t i = 0; i < node->outputs.count; i++) {
        opscope__graph_replace_uses(node->outputs.at[i], node->inputs.at[i + 2].value);
    }
    ++*changed;
    return opscope__graph_remove(node);
}

static int visit_block(struct opscope__graph_block *block, size_t *changed)
{
    int status = OPSCOPE_OK;
    struct opscope__graph_node *next;
    for (struct opscope__graph_node *node = block->first; status == OPSCOPE_OK && node != NULL;
         node = next) {
        next = node->next;
        for (uint32_t i = 0; status == OPSCOPE_OK && i < node->block_count; i++) {
            status = visit_block(node->blocks[i], changed);
        }
        if (status != OPSCOPE_OK) {
            break;
        }
        status = strncmp(node->kind, "py::", 4) == 0     ? fold_kind(node, changed)
                 : strcmp(node->kind, "prim::If") == 0   ? fold_if(node, changed)
                 : strcmp(node->kind, "prim::Loop") == 0 ? fold_loop(node, changed)
                                                         : OPSCOPE_OK;
    }
    return status;
}

int opscope__graph_fold_constants(struct opscope__model_graph *graph, size_t *changed)
{
    *changed = 0;
    return visit_block(graph->body, changed);
}
