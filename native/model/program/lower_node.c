/* model/program/lower_node.c -- nodes without blocks. */
#include <string.h>

#include "model/graph/shown_type.h"
#include "model/graph/verifier.h"
#include "model/program/lower.h"
#include "opscope/status.h"

/* ---- what the kinds prim::NAME have to be ------------------------------------------------------ */

static const struct opscope__graph_type *input_type(const struct opscope__graph_node *node,
                                                    uint32_t index)
{
    return node->inputs.at[index].value->type;
}

static int check_counts(const struct opscope__graph_node *node, uint32_t inputs, uint32_t outputs)
{
    return node->inputs.count == inputs && node->outputs.count == outputs
               ? OPSCOPE_OK
               : opscope__graph_verify_fail(node, "%u inputs and %u outputs, not %u and %u",
                                            node->inputs.count, node->outputs.count, inputs,
                                            outputs);
}

static int check_input(const struct opscope__graph_node *node, uint32_t index,
                       const struct opscope__graph_type *wanted)
{
    return opscope__graph_type_accepts(wanted, input_type(node, index))
               ? OPSCOPE_OK
               : opscope__graph_verify_fail(
                     node, "%s is %s, where it takes %s",
                     opscope__graph_value_label(node->inputs.at[index].value).text,
                     opscope__graph_show_type(input_type(node, index)).text,
                     opscope__graph_show_type(wanted).text);
}

static int check_output(const struct opscope__graph_node *node, uint32_t index,
                        const struct opscope__graph_type *made)
{
    return opscope__graph_type_accepts(node->outputs.at[index]->type, made)
               ? OPSCOPE_OK
               : opscope__graph_verify_fail(
                     node, "output %u is %s, where it makes %s", index,
                     opscope__graph_show_type(node->outputs.at[index]->type).text,
                     opscope__graph_show_type(made).text);
}

static int is_kind_of(const struct opscope__graph_node *node,
                      const struct opscope__graph_type *type, enum opscope__graph_type_kind kind)
{
    return type->kind == kind ? OPSCOPE_OK
                              : opscope__graph_verify_fail(node, "%s, where it needs a %s",
                                                           opscope__graph_show_type(type).text,
                                                           opscope__graph_type_kind_name(kind));
}

static int check_construct(const struct opscope__graph_node *node,
                           enum opscope__graph_type_kind kind)
{
    int status = check_counts(node, node->inputs.count, 1);
    const struct opscope__graph_type *made =
        status == OPSCOPE_OK ? node->outputs.at[0]->type : NULL;
    status = made != NULL ? is_kind_of(node, made, kind) : status;
    if (status == OPSCOPE_OK && kind == OPSCOPE__GRAPH_TUPLE) {
        status = check_counts(node, made->count, 1);
    }
    for (uint32_t i = 0; status == OPSCOPE_OK && i < node->inputs.count; i++) {
        status = check_input(node, i, made->parts[kind == OPSCOPE__GRAPH_TUPLE ? i : 0]);
    }
    return status;
}

static int check_unpack(const struct opscope__graph_node *node, enum opscope__graph_type_kind kind)
{
    int status = check_counts(node, 1, node->outputs.count);
    if (status == OPSCOPE_OK) {
        status = is_kind_of(node, input_type(node, 0), kind);
    }
    if (status == OPSCOPE_OK && kind == OPSCOPE__GRAPH_TUPLE) {
        status = check_counts(node, 1, input_type(node, 0)->count);
    }
    for (uint32_t i = 0; status == OPSCOPE_OK && i < node->outputs.count; i++) {
        status =
            check_output(node, i, input_type(node, 0)->parts[kind == OPSCOPE__GRAPH_TUPLE ? i : 0]);
    }
    return status;
}

static int check_unwrap(const struct opscope__graph_node *node)
{
    int status = check_counts(node, 1, 1);
    if (status != OPSCOPE_OK) {
        return status;
    }
    const struct opscope__graph_type *type = input_type(node, 0);
    while (type->kind == OPSCOPE__GRAPH_OPTIONAL) {
        type = type->parts[0];
    }
    return type->kind == OPSCOPE__GRAPH_NONE ? OPSCOPE_OK : check_output(node, 0, type);
}

static int check_raise(const struct opscope__graph_node *node)
{
    const struct opscope__graph_type *text = opscope__graph_simple_type(OPSCOPE__GRAPH_STR);
    int status = check_counts(node, 2, 0);
    for (uint32_t i = 0; status == OPSCOPE_OK && i < 2; i++) {
        status = check_input(node, i, text);
    }
    return status;
}

/* ---- constants and attributes ----------------------------------------------------------------- */

/* An operand of its own for each constant, or a new list each time the node is run. */
static int lower_constant(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    const struct opscope__graph_value *output = node->outputs.at[0];
    struct opscope__value value;
    opscope__operand *operand = &emitter->of_value[output->number];
    int status = opscope__constant_value(
        &emitter->program->heap, opscope__graph_attribute(node, "value"), output->type, &value);
    if (status != OPSCOPE_OK) {
        return opscope__graph_verify_fail(node, "%s", opscope_tensor_error());
    }
    bool is_list = value.kind == OPSCOPE__VALUE_LIST;
    status = opscope__emit_constant(emitter, value, operand);
    if (status != OPSCOPE_OK || !is_list || opscope__is_argument_only(output)) {
        return status;
    }
    opscope__operand constant = *operand;
    status = opscope__emit_begin(emitter, OPSCOPE__CODE_COPY, node);
    if (status == OPSCOPE_OK) {
        status = opscope__emit_input(emitter, constant);
    }
    return status == OPSCOPE_OK ? opscope__emit_outputs(emitter, node) : status;
}

static opscope_tensor *find_attribute(const struct opscope__emitter *emitter, const char *name)
{
    size_t low = 0, high = emitter->attribute_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, emitter->attributes[middle].name);
        if (order == 0) {
            return emitter->attributes[middle].tensor;
        }
        low = order > 0 ? middle + 1 : low;
        high = order < 0 ? middle : high;
    }
    return NULL;
}

static int lower_attribute(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    const struct opscope__graph_constant *name = opscope__graph_attribute(node, "name");
    int status = check_counts(node, 0, 1);
    if (status == OPSCOPE_OK) {
        status = check_output(node, 0, opscope__graph_simple_type(OPSCOPE__GRAPH_TENSOR));
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (name == NULL || name->kind != OPSCOPE__GRAPH_CONSTANT_STRING) {
        return opscope__graph_verify_fail(node, "it has no attribute \"name\" with a text");
    }
    opscope_tensor *tensor = find_attribute(emitter, name->as.text);
    if (tensor == NULL) {
        return opscope__graph_verify_fail(node, "the model has no attribute \"%.100s\"",
                                          name->as.text);
    }
    return opscope__emit_constant(emitter, opscope__value_tensor(opscope_tensor_retain(tensor)),
                                  &emitter->of_value[node->outputs.at[0]->number]);
}

/* ---- instructions ------------------------------------------------------------------------------ */

static int lower_plain(struct opscope__emitter *emitter, const struct opscope__graph_node *node,
                       enum opscope__code code)
{
    int status = opscope__emit_begin(emitter, code, node);
    if (status == OPSCOPE_OK) {
        status = opscope__emit_inputs(emitter, node);
    }
    return status == OPSCOPE_OK ? opscope__emit_outputs(emitter, node) : status;
}

static int lower_part(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    const struct opscope__graph_constant *index = opscope__graph_attribute(node, "index");
    int status = check_counts(node, 1, 1);
    if (status == OPSCOPE_OK) {
        status = is_kind_of(node, input_type(node, 0), OPSCOPE__GRAPH_TUPLE);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    const struct opscope__graph_type *tuple = input_type(node, 0);
    if (index == NULL || index->kind != OPSCOPE__GRAPH_CONSTANT_INT || index->as.integer < 0 ||
        index->as.integer >= tuple->count) {
        return opscope__graph_verify_fail(node, "its attribute \"index\" is none of the tuple's");
    }
    status = check_output(node, 0, tuple->parts[index->as.integer]);
    if (status == OPSCOPE_OK) {
        status = opscope__emit_begin(emitter, OPSCOPE__CODE_PART, node);
    }
    if (status == OPSCOPE_OK) {
        opscope__emit_last(emitter)->as.target = (uint32_t)index->as.integer;
        status = opscope__emit_inputs(emitter, node);
    }
    return status == OPSCOPE_OK ? opscope__emit_outputs(emitter, node) : status;
}

static int lower_kind(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    const struct opscope__kind *kind;
    int status = opscope__match_kind(node, &kind);
    if (status == OPSCOPE_OK) {
        status = opscope__emit_begin(emitter, OPSCOPE__CODE_KIND, node);
    }
    if (status == OPSCOPE_OK) {
        opscope__emit_last(emitter)->as.function = kind->function;
        status = opscope__emit_inputs(emitter, node);
    }
    return status == OPSCOPE_OK ? opscope__emit_outputs(emitter, node) : status;
}

static bool is_kind(const struct opscope__graph_node *node, const char *kind)
{
    return strcmp(node->kind, kind) == 0;
}

/* Kinds that are one instruction: `check` is negative if the node is wrong. */
static int lower_prim(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    enum opscope__code code;
    int check;
    if (is_kind(node, "prim::ListConstruct")) {
        code = OPSCOPE__CODE_LIST;
        check = check_construct(node, OPSCOPE__GRAPH_LIST);
    } else if (is_kind(node, "prim::TupleConstruct")) {
        code = OPSCOPE__CODE_TUPLE;
        check = check_construct(node, OPSCOPE__GRAPH_TUPLE);
    } else if (is_kind(node, "prim::ListUnpack")) {
        code = OPSCOPE__CODE_UNPACK;
        check = check_unpack(node, OPSCOPE__GRAPH_LIST);
    } else if (is_kind(node, "prim::TupleUnpack")) {
        code = OPSCOPE__CODE_UNPACK;
        check = check_unpack(node, OPSCOPE__GRAPH_TUPLE);
    } else if (is_kind(node, "prim::Unwrap")) {
        code = OPSCOPE__CODE_UNWRAP;
        check = check_unwrap(node);
    } else if (is_kind(node, "prim::RaiseException")) {
        code = OPSCOPE__CODE_RAISE;
        check = check_raise(node);
    } else if (is_kind(node, "prim::Print")) {
        code = OPSCOPE__CODE_PRINT;
        check = check_counts(node, node->inputs.count, 0);
    } else {
        return opscope__graph_verify_fail(node, "there is no kind of this name");
    }
    return check == OPSCOPE_OK ? lower_plain(emitter, node, code) : check;
}

int opscope__lower_node(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    if (node->block_count > 0) {
        return opscope__graph_verify_fail(node, "it has blocks, which only If and Loop have");
    }
    if (is_kind(node, "prim::Constant")) {
        return lower_constant(emitter, node);
    }
    if (is_kind(node, "prim::GetAttr")) {
        return lower_attribute(emitter, node);
    }
    if (strncmp(node->kind, "py::", 4) == 0) {
        return lower_kind(emitter, node);
    }
    if (is_kind(node, "prim::TupleIndex")) {
        return lower_part(emitter, node);
    }
    if (is_kind(node, "prim::Fork")) {
        return opscope__lower_fork(emitter, node);
    }
    if (is_kind(node, "prim::Wait")) {
        return opscope__lower_wait(emitter, node);
    }
    if (strncmp(node->kind, "prim::", 6) == 0) {
        return lower_prim(emitter, node);
    }
    const opscope_operator *op = opscope_operator_find(node->kind);
    return op != NULL ? opscope__lower_call(emitter, node, op)
                      : opscope__graph_verify_fail(node, "no operator of this name is loaded");
}
