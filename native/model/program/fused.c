/* model/program/fused.c -- see model/program/fused.h. */
#include "model/program/fused.h"

#include <stdlib.h>
#include <string.h>

#include "opscope/autograd.h"
#include "opscope/range_inline.h"
#include "opscope/status.h"
#include "tensor/core/registry.h"
#include "model/graph/passes/fuse_elementwise.h"
#include "tensor/kernels/fused.h"

enum { OVERLOAD_BYTES = 80 };

struct opscope__fused_call {
    struct opscope__fused plan;
    const opscope_op *range;
    size_t given_count;                                  /* inputs that a run gives */
    opscope_argument inputs[OPSCOPE__FUSED_INPUT_LIMIT]; /* the others are defaults */
};

bool opscope__is_fusible(const char *kind)
{
    const opscope_operator *op = opscope_operator_find(kind);
    return op != NULL && op->spec->elementwise != NULL && !op->is_inplace;
}

/* ---- making a call -------------------------------------------------------------------------------- */

_Static_assert((int)OPSCOPE__GRAPH_FUSED_INPUTS < (int)OPSCOPE__FUSED_INPUT_LIMIT,
               "there is room for defaults beside the inputs of a node");

/* Of defaults of elementwise operators, which are numbers. */
static bool is_equal(const opscope_argument *one, const opscope_argument *other)
{
    return one->kind == other->kind && memcmp(&one->as, &other->as, sizeof one->as) == 0;
}

/* The place of an argument that the graph leaves out, once for all steps that leave it out. False:
 * there is no room. */
static bool add_default(struct opscope__fused_call *call, const opscope_argument *otherwise,
                        uint8_t *place)
{
    size_t at = call->given_count;
    while (at < call->plan.input_count && !is_equal(&call->inputs[at], otherwise)) {
        at++;
    }
    if (at == OPSCOPE__FUSED_INPUT_LIMIT) {
        return false;
    }
    if (at == call->plan.input_count) {
        call->inputs[call->plan.input_count++] = *otherwise;
    }
    *place = (uint8_t)at;
    return true;
}

/* The step whose result a value is: steps are in the order of the block's nodes. */
static size_t step_of(const struct opscope__graph_node *node)
{
    size_t step = 0;
    for (node = node->previous; node != NULL; node = node->previous) {
        step++;
    }
    return step;
}

/* Adds a node of the block. False: it cannot be fused. */
static bool add_step(struct opscope__fused_call *call, const struct opscope__graph_node *node)
{
    struct opscope__fused *plan = &call->plan;
    const opscope_operator *op = opscope_operator_find(node->kind);
    if (plan->step_count == OPSCOPE__FUSED_STEP_LIMIT || !opscope__is_fusible(node->kind)) {
        return false;
    }
    const struct opscope__elementwise *spec = op->spec->elementwise;
    struct opscope__fused_step *step = &plan->steps[plan->step_count];
    const size_t count = (size_t)spec->operands + spec->numbers;
    if (node->inputs.count > count || node->inputs.count < spec->operands ||
        op->schema.count != count) {
        return false;
    }
    step->spec = spec;
    for (size_t i = 0; i < count; i++) {
        struct opscope__fused_source source = {0};
        if (i >= node->inputs.count) {
            if (!add_default(call, &op->schema.parameters[i].otherwise, &source.index)) {
                return false;
            }
        } else {
            const struct opscope__graph_value *value = node->inputs.at[i].value;
            source.is_step = value->node != NULL;
            source.index = (uint8_t)(source.is_step ? step_of(value->node) : value->index);
        }
        if (i < spec->operands) {
            step->operands[i] = source;
        } else if (!source.is_step) {
            step->numbers[i - spec->operands] = source.index;
        } else {
            return false;
        }
    }
    plan->step_count++;
    return true;
}

/* Whether the block takes only its own inputs, and returns its last node's result. */
static bool is_closed(const struct opscope__graph_block *block)
{
    for (const struct opscope__graph_node *node = block->first; node != NULL; node = node->next) {
        for (uint32_t i = 0; i < node->inputs.count; i++) {
            const struct opscope__graph_value *value = node->inputs.at[i].value;
            if ((value->node != NULL ? value->node->block : value->block) != block) {
                return false;
            }
        }
    }
    const struct opscope__graph_value *result = block->outputs.at[0].value;
    return block->last != NULL && result->node == block->last;
}

/* "mul_add_relu", cut if it is long. */
static void name_overload(const struct opscope__graph_block *block, char *text)
{
    size_t used = 0;
    for (const struct opscope__graph_node *node = block->first; node != NULL; node = node->next) {
        const char *name = strstr(node->kind, "::") + 2;
        const size_t bytes = strlen(name);
        if (used + bytes + 2 > OVERLOAD_BYTES) {
            break;
        }
        if (used > 0) {
            text[used++] = '_';
        }
        memcpy(text + used, name, bytes);
        used += bytes;
    }
    text[used] = '\0';
}

int opscope__fused_call_new(const struct opscope__graph_node *node,
                            struct opscope__fused_call **out)
{
    const struct opscope__graph_block *block = node->blocks[0];
    char overload[OVERLOAD_BYTES];
    *out = NULL;
    if (node->inputs.count > OPSCOPE__FUSED_INPUT_LIMIT || !is_closed(block)) {
        return OPSCOPE_OK;
    }
    struct opscope__fused_call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    call->given_count = call->plan.input_count = node->inputs.count;
    bool is_known = true;
    for (const struct opscope__graph_node *one = block->first; one != NULL && is_known;
         one = one->next) {
        is_known = add_step(call, one);
    }
    if (!is_known || !opscope__fused_plan(&call->plan)) {
        free(call);
        return OPSCOPE_OK;
    }
    name_overload(block, overload);
    if (opscope_op_intern("core::fused", overload, OPSCOPE_FUNCTION, OPSCOPE_FORWARD,
                          &call->range) != OPSCOPE_OK) {
        call->range = opscope_op_other();
    }
    *out = call;
    return OPSCOPE_OK;
}

void opscope__fused_call_free(struct opscope__fused_call *call)
{
    free(call);
}

/* ---- running it ------------------------------------------------------------------------------------ */

static opscope_argument argument_of(const struct opscope__value *value)
{
    opscope_argument argument = {.kind = OPSCOPE_ARGUMENT_NONE};
    switch ((enum opscope__value_kind)value->kind) {
    case OPSCOPE__VALUE_TENSOR:
        argument.kind = OPSCOPE_ARGUMENT_TENSOR;
        argument.as.tensor = value->as.tensor;
        break;
    case OPSCOPE__VALUE_BOOL:
    case OPSCOPE__VALUE_INT:
        argument.kind =
            value->kind == OPSCOPE__VALUE_BOOL ? OPSCOPE_ARGUMENT_BOOL : OPSCOPE_ARGUMENT_INT;
        argument.as.integer = value->as.integer;
        break;
    case OPSCOPE__VALUE_FLOAT:
        argument.kind = OPSCOPE_ARGUMENT_FLOAT;
        argument.as.real = value->as.real;
        break;
    default:
        break;
    }
    return argument;
}

static bool wants_grad(const opscope_argument *inputs, size_t count)
{
    bool does = false;
    for (size_t i = 0; i < count && opscope_grad_mode(); i++) {
        does = does || (inputs[i].kind == OPSCOPE_ARGUMENT_TENSOR &&
                        opscope_tensor_requires_grad(inputs[i].as.tensor));
    }
    return does;
}

int opscope__fused_call_run(const struct opscope__fused_call *call,
                            const struct opscope__value *const *inputs, opscope_tensor *spare,
                            struct opscope__value *out)
{
    opscope_argument arguments[OPSCOPE__FUSED_INPUT_LIMIT];
    opscope_tensor *made = NULL;
    for (size_t i = 0; i < call->plan.input_count; i++) {
        arguments[i] = i < call->given_count ? argument_of(inputs[i]) : call->inputs[i];
    }
    if (wants_grad(arguments, call->given_count) || !opscope__fused_fits(&call->plan, arguments)) {
        return 0;
    }
    opscope_range range;
    opscope_range_open(&range, call->range, NULL);
    const int status = opscope__fused_run(&call->plan, arguments, spare, &made);
    if (__builtin_expect(range.snapshot != NULL && status != OPSCOPE_OK, 0)) {
        opscope_range_fail(&range);
    }
    opscope_range_close(&range);
    if (status != OPSCOPE_OK) {
        return status;
    }
    *out = opscope__value_tensor(made);
    return 1;
}
