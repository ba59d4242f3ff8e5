/* model/graph/verify_kind.c -- what prim::If, prim::Loop and prim::Constant have to be. */
#include <string.h>

#include "model/graph/shown_type.h"
#include "model/graph/verifier.h"
#include "opscope/status.h"

typedef const struct opscope__graph_type *(*type_at)(const void *list, uint32_t index);

static const struct opscope__graph_type *of_use(const void *list, uint32_t index)
{
    return ((const struct opscope__graph_uses *)list)->at[index].value->type;
}

static const struct opscope__graph_type *of_value(const void *list, uint32_t index)
{
    return ((const struct opscope__graph_values *)list)->at[index]->type;
}

static bool is_of(const struct opscope__graph_type *type, enum opscope__graph_type_kind kind)
{
    return type->kind == kind;
}

/* `wanted` and `is` are lists of types, of which the first `skip` of `is` mean something else. An
 * Optional accepts its part and None where a use is checked, not where a definition is. */
static int check_types(const struct opscope__graph_node *node, const char *what, type_at of_is,
                       const void *is, uint32_t is_count, uint32_t skip,
                       const struct opscope__graph_values *wanted)
{
    bool is_exact = of_is == of_value;
    if (is_count - skip != wanted->count) {
        return opscope__graph_verify_fail(node, "%u values %s, where it produces %u",
                                          is_count - skip, what, wanted->count);
    }
    for (uint32_t i = 0; i < wanted->count; i++) {
        const struct opscope__graph_type *type = of_is(is, i + skip);
        if (is_exact ? !opscope__graph_type_equal(type, wanted->at[i]->type)
                     : !opscope__graph_type_accepts(wanted->at[i]->type, type)) {
            return opscope__graph_verify_fail(node,
                                              "value %u of those %s is %s, where it produces %s", i,
                                              what, opscope__graph_show_type(type).text,
                                              opscope__graph_show_type(wanted->at[i]->type).text);
        }
    }
    return OPSCOPE_OK;
}

static int verify_if(const struct opscope__graph_node *node)
{
    if (node->inputs.count != 1 || !is_of(of_use(&node->inputs, 0), OPSCOPE__GRAPH_BOOL)) {
        return opscope__graph_verify_fail(node, "its input is not one bool");
    }
    if (node->block_count != 2) {
        return opscope__graph_verify_fail(node, "%u blocks, not 2", node->block_count);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct opscope__graph_block *block = node->blocks[i];
        if (block->inputs.count > 0) {
            return opscope__graph_verify_fail(node, "block%u takes values", i);
        }
        int status = check_types(node, i == 0 ? "that block0 returns" : "that block1 returns",
                                 of_use, &block->outputs, block->outputs.count, 0, &node->outputs);
        if (status < 0) {
            return status;
        }
    }
    return OPSCOPE_OK;
}

static int verify_loop(const struct opscope__graph_node *node)
{
    const struct opscope__graph_uses *inputs = &node->inputs;
    if (inputs->count < 2 || !is_of(of_use(inputs, 0), OPSCOPE__GRAPH_INT) ||
        !is_of(of_use(inputs, 1), OPSCOPE__GRAPH_BOOL)) {
        return opscope__graph_verify_fail(node, "its first inputs are not an int and a bool");
    }
    if (node->block_count != 1) {
        return opscope__graph_verify_fail(node, "%u blocks, not 1", node->block_count);
    }
    const struct opscope__graph_values *taken = &node->blocks[0]->inputs;
    const struct opscope__graph_uses *returned = &node->blocks[0]->outputs;
    if (taken->count < 1 || !is_of(of_value(taken, 0), OPSCOPE__GRAPH_INT)) {
        return opscope__graph_verify_fail(node, "its block does not take an int first");
    }
    if (returned->count < 1 || !is_of(of_use(returned, 0), OPSCOPE__GRAPH_BOOL)) {
        return opscope__graph_verify_fail(node, "its block does not return a bool first");
    }
    int status =
        check_types(node, "that it carries", of_use, inputs, inputs->count, 2, &node->outputs);
    if (status == OPSCOPE_OK) {
        status = check_types(node, "that its block carries", of_value, taken, taken->count, 1,
                             &node->outputs);
    }
    if (status == OPSCOPE_OK) {
        status = check_types(node, "that its block returns", of_use, returned, returned->count, 1,
                             &node->outputs);
    }
    return status;
}

static int verify_fused(const struct opscope__graph_node *node)
{
    if (node->block_count != 1 || node->outputs.count != 1 || node->attribute_count != 0) {
        return opscope__graph_verify_fail(node, "it has no single block, or no single output");
    }
    const struct opscope__graph_block *block = node->blocks[0];
    int status = check_types(node, "that it takes", of_use, &node->inputs, node->inputs.count, 0,
                             &block->inputs);
    return status == OPSCOPE_OK
               ? check_types(node, "that its block returns", of_use, &block->outputs,
                             block->outputs.count, 0, &node->outputs)
               : status;
}

static bool fits(const struct opscope__graph_constant *value,
                 const struct opscope__graph_type *type)
{
    switch (type->kind) {
    case OPSCOPE__GRAPH_INT:
        return value->kind == OPSCOPE__GRAPH_CONSTANT_INT;
    case OPSCOPE__GRAPH_FLOAT:
        return value->kind == OPSCOPE__GRAPH_CONSTANT_FLOAT;
    case OPSCOPE__GRAPH_BOOL:
        return value->kind == OPSCOPE__GRAPH_CONSTANT_BOOL;
    case OPSCOPE__GRAPH_STR:
    case OPSCOPE__GRAPH_DTYPE:
        return value->kind == OPSCOPE__GRAPH_CONSTANT_STRING;
    case OPSCOPE__GRAPH_NONE:
        return value->kind == OPSCOPE__GRAPH_CONSTANT_NONE;
    case OPSCOPE__GRAPH_OPTIONAL:
        return value->kind == OPSCOPE__GRAPH_CONSTANT_NONE || fits(value, type->parts[0]);
    case OPSCOPE__GRAPH_LIST:
        for (uint32_t i = 0; value->kind == OPSCOPE__GRAPH_CONSTANT_LIST && i < value->count; i++) {
            if (!fits(&value->as.items[i], type->parts[0])) {
                return false;
            }
        }
        return value->kind == OPSCOPE__GRAPH_CONSTANT_LIST;
    default:
        return false;
    }
}

static int verify_constant(const struct opscope__graph_node *node)
{
    if (node->inputs.count != 0 || node->outputs.count != 1 || node->block_count != 0) {
        return opscope__graph_verify_fail(node, "a constant takes nothing and produces one value");
    }
    const struct opscope__graph_constant *value = opscope__graph_attribute(node, "value");
    if (value == NULL) {
        return opscope__graph_verify_fail(node, "it has no attribute \"value\"");
    }
    const struct opscope__graph_type *type = node->outputs.at[0]->type;
    if (!fits(value, type)) {
        return opscope__graph_verify_fail(node, "its value is no %s",
                                          opscope__graph_show_type(type).text);
    }
    return OPSCOPE_OK;
}

int opscope__graph_verify_kind(const struct opscope__graph_node *node)
{
    return strcmp(node->kind, "prim::If") == 0         ? verify_if(node)
           : strcmp(node->kind, "prim::Loop") == 0     ? verify_loop(node)
           : strcmp(node->kind, "prim::Fused") == 0    ? verify_fused(node)
           : strcmp(node->kind, "prim::Constant") == 0 ? verify_constant(node)
                                                       : OPSCOPE_OK;
}
