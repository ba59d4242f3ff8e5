/* tensor/call.c -- calling an operator: its arguments checked, its range opened, its node recorded.
 */
#include "tensor/call.h"

#include <string.h>

#include "tensor/autograd/tape.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

/* ---- for forward ---------------------------------------------------------------------------- */

const char *opscope__call_name(const struct opscope__call *call)
{
    return call->op->name;
}

opscope_tensor *opscope__call_into(const struct opscope__call *call)
{
    return call->into;
}

void opscope__call_save(struct opscope__call *call, opscope_tensor *tensor)
{
    if (call->wants_grad && call->saved_count < OPSCOPE__SAVED_BY_FORWARD) {
        call->saved[call->saved_count++] = opscope_tensor_retain(tensor);
    }
}

/* ---- arguments ------------------------------------------------------------------------------ */

static bool is_number(const opscope_argument *argument)
{
    return argument->kind == OPSCOPE_ARGUMENT_INT || argument->kind == OPSCOPE_ARGUMENT_FLOAT ||
           argument->kind == OPSCOPE_ARGUMENT_BOOL;
}

static bool fits(const struct opscope__operator_spec *spec,
                 const struct opscope__parameter *parameter, const opscope_argument *argument)
{
    if (argument->kind == OPSCOPE_ARGUMENT_NONE) {
        return parameter->optional;
    }
    switch (parameter->type) {
    case OPSCOPE__TYPE_TENSOR:
        return argument->kind == OPSCOPE_ARGUMENT_TENSOR ||
               (spec->takes_numbers && is_number(argument));
    case OPSCOPE__TYPE_TENSORS:
        return argument->kind == OPSCOPE_ARGUMENT_TENSORS;
    case OPSCOPE__TYPE_INTS:
        return argument->kind == OPSCOPE_ARGUMENT_INTS;
    case OPSCOPE__TYPE_INT_OR_INTS:
        return argument->kind == OPSCOPE_ARGUMENT_INT || argument->kind == OPSCOPE_ARGUMENT_INTS;
    case OPSCOPE__TYPE_FLOAT:
    case OPSCOPE__TYPE_SCALAR:
        return is_number(argument);
    case OPSCOPE__TYPE_TEXT:
        return argument->kind == OPSCOPE_ARGUMENT_TEXT;
    case OPSCOPE__TYPE_INT:
    case OPSCOPE__TYPE_BOOL:
    case OPSCOPE__TYPE_DTYPE:
        return argument->kind == OPSCOPE_ARGUMENT_INT || argument->kind == OPSCOPE_ARGUMENT_BOOL;
    }
    return false;
}

static int bind(const opscope_operator *op, const opscope_argument *given, size_t count,
                opscope_argument *into)
{
    const struct opscope__schema *schema = &op->schema;
    if (count > schema->count) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE,
                                   "%s: takes at most %zu arguments, not %zu: %s", op->name,
                                   schema->count, count, op->spec->schema);
    }
    for (size_t i = 0; i < schema->count; i++) {
        const struct opscope__parameter *parameter = &schema->parameters[i];
        if (i >= count && !parameter->has_default) {
            return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: argument \"%s\" is missing: %s",
                                       op->name, parameter->name, op->spec->schema);
        }
        into[i] = i < count ? given[i] : parameter->otherwise;
        if (!fits(op->spec, parameter, &into[i])) {
            return opscope_tensor_fail(OPSCOPE_ERROR_TYPE,
                                       "%s: argument \"%s\" is of the wrong kind: %s", op->name,
                                       parameter->name, op->spec->schema);
        }
    }
    return OPSCOPE_OK;
}

bool opscope__next_input(const opscope_operator *op, const opscope_argument *arguments, size_t *at,
                         size_t *within, opscope_tensor **out)
{
    for (; *at < op->schema.count; (*at)++) {
        const opscope_argument *argument = &arguments[*at];
        enum opscope__type type = op->schema.parameters[*at].type;
        if (type == OPSCOPE__TYPE_TENSOR) {
            *out = argument->kind == OPSCOPE_ARGUMENT_TENSOR ? argument->as.tensor : NULL;
            (*at)++;
            return true;
        }
        if (type == OPSCOPE__TYPE_TENSORS && argument->kind == OPSCOPE_ARGUMENT_TENSORS &&
            *within < argument->count) {
            *out = argument->as.tensors[(*within)++];
            return true;
        }
        *within = 0;
    }
    return false;
}

static bool wants_grad(const opscope_operator *op, const opscope_argument *arguments)
{
    size_t at = 0, within = 0;
    opscope_tensor *tensor;
    while (opscope__next_input(op, arguments, &at, &within, &tensor)) {
        if (tensor != NULL && opscope_tensor_requires_grad(tensor)) {
            return true;
        }
    }
    return false;
}

/* ---- what callbacks see --------------------------------------------------------------------- */

struct boxed {
    const opscope_argument *arguments;
    size_t count;
};

static opscope_value box_one(const opscope_argument *argument)
{
    opscope_value value = {OPSCOPE_VALUE_NONE, NULL, {0}};
    switch (argument->kind) {
    case OPSCOPE_ARGUMENT_TENSOR:
        value.kind = OPSCOPE_VALUE_OBJECT;
        value.type = "tensor";
        value.as.object = argument->as.tensor;
        break;
    case OPSCOPE_ARGUMENT_TENSORS:
    case OPSCOPE_ARGUMENT_INTS:
        value.kind = OPSCOPE_VALUE_OBJECT;
        value.type = argument->kind == OPSCOPE_ARGUMENT_INTS ? "ints" : "tensors";
        value.as.object = (void *)(uintptr_t)argument;
        break;
    case OPSCOPE_ARGUMENT_INT:
    case OPSCOPE_ARGUMENT_BOOL:
        value.kind =
            argument->kind == OPSCOPE_ARGUMENT_INT ? OPSCOPE_VALUE_INT : OPSCOPE_VALUE_BOOL;
        value.as.integer = argument->as.integer;
        break;
    case OPSCOPE_ARGUMENT_FLOAT:
        value.kind = OPSCOPE_VALUE_FLOAT;
        value.as.real = argument->as.real;
        break;
    case OPSCOPE_ARGUMENT_TEXT:
        value.kind = OPSCOPE_VALUE_TEXT;
        value.as.text = argument->as.text;
        break;
    case OPSCOPE_ARGUMENT_NONE:
        break;
    }
    return value;
}

static size_t box_inputs(void *arg, opscope_value *values, size_t capacity)
{
    const struct boxed *boxed = arg;
    for (size_t i = 0; i < boxed->count && i < capacity; i++) {
        values[i] = box_one(&boxed->arguments[i]);
    }
    return boxed->count;
}

struct boxed_outputs {
    opscope_tensor **tensors;
    size_t count;
};

static size_t box_outputs(void *arg, opscope_value *values, size_t capacity)
{
    const struct boxed_outputs *boxed = arg;
    for (size_t i = 0; i < boxed->count && i < capacity; i++) {
        values[i] = (opscope_value){OPSCOPE_VALUE_OBJECT, "tensor", {.object = boxed->tensors[i]}};
    }
    return boxed->count;
}

/* ---- the call --------------------------------------------------------------------------------- */

/* Whether the operator's results can go where the call wants them. */
static int check_results(const struct opscope__call *call)
{
    const opscope_operator *op = call->op;
    if (__builtin_expect(op->schema.output_is_list != (call->list != NULL), 0)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: gives %s: %s", op->name,
                                   call->list != NULL ? "no list" : "a list, ask for one",
                                   op->spec->schema);
    }
    if (call->targets == NULL) {
        return OPSCOPE_OK;
    }
    if (op->is_inplace || op->spec->is_view) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_TYPE,
            "%s: its result is memory of its argument, it cannot be written to out", op->name);
    }
    if ((op->has_node || op->spec->is_composite) && opscope_grad_mode() &&
        wants_grad(op, call->arguments)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: out= takes no part in gradients, but an argument requires grad; leave "
            "out= away, or call under no_grad",
            op->name);
    }
    return OPSCOPE_OK;
}

static void release_outputs(size_t count, opscope_tensor **outputs)
{
    for (size_t i = 0; i < count; i++) {
        opscope_tensor_release(outputs[i]);
        outputs[i] = NULL;
    }
}

/* Forward and node. outputs are NULL on failure. */
static int compute(struct opscope__call *call, opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const opscope_operator *op = call->op;
    bool before = call->wants_grad && opscope_grad_mode_set(false);
    int status = call->targets != NULL ? opscope__call_into_targets(call, arguments, outputs)
                 : op->is_inplace      ? opscope__call_inplace(call, arguments, outputs)
                                       : op->spec->forward(call, arguments, outputs);
    if (call->wants_grad) {
        opscope_grad_mode_set(before);
    }
    if (status == OPSCOPE_OK && op->spec->is_view) {
        status = opscope__view_note(arguments[0].as.tensor, outputs[0],
                                    op->spec->backward == NULL ? OPSCOPE__NO_VIEW
                                    : opscope_grad_mode()      ? OPSCOPE__VIEW
                                                               : OPSCOPE__VIEW_NO_GRAD);
    }
    if (status == OPSCOPE_OK && call->wants_grad) {
        status = opscope__tape_record(call, outputs);
    }
    if (status == OPSCOPE_OK && call->written != NULL) {
        status = opscope__tape_rebase(outputs[0]);
    }
    if (status != OPSCOPE_OK) {
        release_outputs(op->schema.output_count, outputs);
    }
    for (size_t i = 0; i < call->saved_count; i++) {
        opscope_tensor_release(call->saved[i]);
    }
    for (size_t i = 0; i < call->held_count; i++) {
        opscope_tensor_release(call->held[i]);
    }
    return status;
}

/* Where the results go, only one of the three, is the caller's to say: outputs, list or targets. */
static inline int run(const opscope_operator *op, const opscope_argument *arguments, size_t count,
                      opscope_tensor **outputs, opscope_tensor_list *list, opscope_tensor **targets)
{
    opscope_argument bound[OPSCOPE_ARGUMENT_LIMIT];
    opscope_tensor *made[OPSCOPE_OUTPUT_LIMIT] = {NULL};
    struct boxed boxed = {arguments, count};
    struct opscope__call call;
    call.op = op;
    call.arguments = bound;
    call.into = NULL;
    call.written = NULL;
    call.held_count = 0;
    call.list = list;
    call.targets = targets;
    call.saved_count = 0;
    call.info = (opscope_range_info){-1, 0, box_inputs, &boxed, false};

    /* The arguments are checked inside of the range: a call that fails is a call. */
    int bad = bind(op, arguments, count, bound);
    if (bad == OPSCOPE_OK) {
        bad = check_results(&call);
    }
    call.wants_grad =
        bad == OPSCOPE_OK && op->has_node && opscope_grad_mode() && wants_grad(op, bound);
    if (call.wants_grad) {
        call.info.sequence_nr = opscope__tape_next_sequence();
    }
    opscope_range range;
    opscope_range_open(&range, op->range, &call.info);
    int status = bad == OPSCOPE_OK ? compute(&call, bound, made) : bad;
    if (__builtin_expect(range.firing != NULL, 0)) {
        if (status == OPSCOPE_OK) {
            struct boxed_outputs out = {made, op->schema.output_count};
            if (list != NULL) {
                out = (struct boxed_outputs){list->tensors, list->count};
            }
            opscope_range_outputs(&range, box_outputs, &out);
        } else {
            opscope_range_fail(&range);
        }
    }
    opscope_range_close(&range);
    if (status != OPSCOPE_OK) {
        opscope__failure_name(op->name, op->spec->is_composite);
        return status;
    }
    if (outputs != NULL) {
        memcpy(outputs, made, op->schema.output_count * sizeof *made);
    } else {
        release_outputs(op->schema.output_count, made);
    }
    return OPSCOPE_OK;
}

int opscope_call(const opscope_operator *op, const opscope_argument *arguments, size_t count,
                 opscope_tensor **outputs)
{
    return run(op, arguments, count, outputs, NULL, NULL);
}

int opscope_call_list(const opscope_operator *op, const opscope_argument *arguments, size_t count,
                      opscope_tensor_list *out)
{
    opscope_tensor_list list = {NULL, 0};
    int status = run(op, arguments, count, NULL, &list, NULL);
    if (status != OPSCOPE_OK) {
        opscope_tensor_list_release(&list);
        return status;
    }
    *out = list;
    return OPSCOPE_OK;
}

int opscope_call_out(const opscope_operator *op, const opscope_argument *arguments, size_t count,
                     opscope_tensor **into)
{
    return run(op, arguments, count, NULL, NULL, into);
}
