/* model/program/plan.c -- nodes of operators: their types are checked, their constants prepared. */
#include <stdlib.h>

#include "model/graph/shown_type.h"
#include "model/graph/verifier.h"
#include "model/program/argument.h"
#include "model/program/lower.h"
#include "opscope/status.h"
#include "tensor/core/registry.h"

static bool is_number(const struct opscope__graph_type *type)
{
    return type->kind == OPSCOPE__GRAPH_INT || type->kind == OPSCOPE__GRAPH_FLOAT ||
           type->kind == OPSCOPE__GRAPH_BOOL;
}

static bool is_list_of(const struct opscope__graph_type *type, enum opscope__graph_type_kind kind)
{
    return type->kind == OPSCOPE__GRAPH_LIST && type->parts[0]->kind == kind;
}

/* What the eager call accepts, except that nothing there is a tensor of one element for a number.
 */
static bool accepts(const opscope_operator *op, const struct opscope__parameter *parameter,
                    const struct opscope__graph_type *type)
{
    while (parameter->optional && type->kind == OPSCOPE__GRAPH_OPTIONAL) {
        type = type->parts[0];
    }
    if (type->kind == OPSCOPE__GRAPH_NONE) {
        return parameter->optional;
    }
    switch (parameter->type) {
    case OPSCOPE__TYPE_TENSOR:
        return type->kind == OPSCOPE__GRAPH_TENSOR ||
               (opscope__operator_spec(op)->takes_numbers && is_number(type));
    case OPSCOPE__TYPE_TENSORS:
        return is_list_of(type, OPSCOPE__GRAPH_TENSOR);
    case OPSCOPE__TYPE_INT:
        return type->kind == OPSCOPE__GRAPH_INT || type->kind == OPSCOPE__GRAPH_BOOL;
    case OPSCOPE__TYPE_INTS:
    case OPSCOPE__TYPE_INT_OR_INTS:
        return type->kind == OPSCOPE__GRAPH_INT || is_list_of(type, OPSCOPE__GRAPH_INT);
    case OPSCOPE__TYPE_FLOAT:
    case OPSCOPE__TYPE_SCALAR:
        return is_number(type);
    case OPSCOPE__TYPE_BOOL:
        return type->kind == OPSCOPE__GRAPH_BOOL;
    case OPSCOPE__TYPE_DTYPE:
        return type->kind == OPSCOPE__GRAPH_DTYPE;
    case OPSCOPE__TYPE_TEXT:
        return type->kind == OPSCOPE__GRAPH_STR;
    }
    return false;
}

static int check_inputs(const struct opscope__graph_node *node, const opscope_operator *op)
{
    const struct opscope__schema *schema = opscope__operator_schema(op);
    const char *text = opscope__operator_spec(op)->schema;
    if (node->inputs.count > schema->count) {
        return opscope__graph_verify_fail(node, "it takes at most %zu inputs, not %u: %s",
                                          schema->count, node->inputs.count, text);
    }
    for (size_t i = 0; i < schema->count; i++) {
        const struct opscope__parameter *parameter = &schema->parameters[i];
        if (i >= node->inputs.count) {
            if (!parameter->has_default) {
                return opscope__graph_verify_fail(node, "the input \"%s\" is missing: %s",
                                                  parameter->name, text);
            }
            continue;
        }
        const struct opscope__graph_value *value = node->inputs.at[i].value;
        if (!accepts(op, parameter, value->type)) {
            return opscope__graph_verify_fail(
                node, "%s is %s, which the input \"%s\" does not take: %s",
                opscope__graph_value_label(value).text, opscope__graph_show_type(value->type).text,
                parameter->name, text);
        }
    }
    return OPSCOPE_OK;
}

static int check_outputs(const struct opscope__graph_node *node, const opscope_operator *op)
{
    const struct opscope__schema *schema = opscope__operator_schema(op);
    bool fits = node->outputs.count == (schema->output_is_list ? 1 : schema->output_count);
    for (uint32_t i = 0; fits && i < node->outputs.count; i++) {
        const struct opscope__graph_type *type = node->outputs.at[i]->type;
        fits = schema->output_is_list ? is_list_of(type, OPSCOPE__GRAPH_TENSOR)
                                      : type->kind == OPSCOPE__GRAPH_TENSOR;
    }
    return fits ? OPSCOPE_OK
                : opscope__graph_verify_fail(node, "its outputs are not those of %s",
                                             opscope__operator_spec(op)->schema);
}

bool opscope__is_argument_only(const struct opscope__graph_value *value)
{
    for (const struct opscope__graph_use *use = value->first_use; use != NULL; use = use->next) {
        if (use->node == NULL || opscope_operator_find(use->node->kind) == NULL) {
            return false;
        }
    }
    return true;
}

void opscope__call_plan_free(struct opscope__call_plan *plan)
{
    for (size_t i = 0; plan != NULL && i < OPSCOPE_ARGUMENT_LIMIT; i++) {
        free(plan->memory[i]);
    }
    free(plan);
}

/* A constant argument, or one that is given by each run. */
static int plan_argument(struct opscope__emitter *emitter, struct opscope__call_plan *plan,
                         const struct opscope__graph_node *node, uint32_t index)
{
    const struct opscope__parameter *parameter =
        &opscope__operator_schema(plan->op)->parameters[index];
    const struct opscope__graph_value *value = node->inputs.at[index].value;
    const struct opscope__given given = {(uint8_t)index, (uint8_t)parameter->type,
                                         parameter->length};
    opscope__operand operand = opscope__emit_operand(emitter, value);
    if ((operand & OPSCOPE__OPERAND_CONSTANT) == 0) {
        plan->given[plan->given_count++] = given;
        return opscope__emit_used(emitter, value, emitter->last_use[value->number] == node);
    }
    const struct opscope__value *constants = (const void *)emitter->constants.at;
    const struct opscope__value *constant = &constants[operand & OPSCOPE__OPERAND_INDEX];
    size_t count = opscope__argument_items(&given, constant);
    if (count > 0) {
        plan->memory[index] = calloc(count, sizeof(int64_t));
        if (plan->memory[index] == NULL) {
            return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
        }
    }
    opscope__argument_fill(&given, constant, plan->memory[index], &plan->arguments[index]);
    return OPSCOPE_OK;
}

int opscope__lower_call(struct opscope__emitter *emitter, const struct opscope__graph_node *node,
                        const opscope_operator *op)
{
    int status = check_inputs(node, op);
    if (status == OPSCOPE_OK) {
        status = check_outputs(node, op);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__emit_begin(emitter, OPSCOPE__CODE_CALL, node);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    struct opscope__call_plan *plan = calloc(1, sizeof *plan);
    opscope__emit_last(emitter)->as.call = plan;
    if (plan == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    plan->op = op;
    plan->argument_count = (uint8_t)opscope__operator_schema(op)->count;
    plan->shown_count = (uint8_t)node->inputs.count;
    plan->output_count = (uint8_t)opscope__operator_schema(op)->output_count;
    plan->is_list = opscope__operator_schema(op)->output_is_list;
    plan->takes_spare = !emitter->keeps_operands && opscope__operator_spec(op)->elementwise != NULL;
    for (uint32_t i = 0; status == OPSCOPE_OK && i < node->inputs.count; i++) {
        status = plan_argument(emitter, plan, node, i);
    }
    for (uint32_t i = node->inputs.count; i < plan->argument_count; i++) {
        plan->arguments[i] = opscope__operator_schema(op)->parameters[i].otherwise;
    }
    return status == OPSCOPE_OK ? opscope__emit_outputs(emitter, node) : status;
}
