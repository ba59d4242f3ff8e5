/* tensor/dispatch/dispatch.c -- calls an operator: checks its arguments, opens its range, records
 * its node. */
#include <string.h>

#include "tensor/autograd/tape.h"
#include "tensor/autograd/view.h"
#include "tensor/autograd/write.h"
#include "tensor/core/argument.h"
#include "tensor/base/error.h"
#include "tensor/dispatch/inplace.h"
#include "tensor/dispatch/into.h"
#include "tensor/dispatch/spare.h"

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

/* ---- values for callbacks ------------------------------------------------------------------- */

struct boxed {
    const opscope_argument *arguments;
    size_t count;
};

/* An omitted tensor is None. */
static opscope_value box_tensor(opscope_tensor *tensor)
{
    opscope_value value = {.kind = OPSCOPE_VALUE_NONE};
    if (tensor != NULL) {
        value.kind = OPSCOPE_VALUE_OBJECT;
        value.type = "tensor";
        value.as.object = tensor;
    }
    return value;
}

static size_t box_tensors(void *arg, opscope_value *values, size_t capacity)
{
    const opscope_argument *argument = arg;
    for (size_t i = 0; i < argument->count && i < capacity; i++) {
        values[i] = box_tensor(argument->as.tensors[i]);
    }
    return argument->count;
}

static size_t box_ints(void *arg, opscope_value *values, size_t capacity)
{
    const opscope_argument *argument = arg;
    for (size_t i = 0; i < argument->count && i < capacity; i++) {
        values[i] =
            (opscope_value){.kind = OPSCOPE_VALUE_INT, .as.integer = argument->as.integers[i]};
    }
    return argument->count;
}

static opscope_value box_one(const opscope_argument *argument)
{
    opscope_value value = {.kind = OPSCOPE_VALUE_NONE};
    switch (argument->kind) {
    case OPSCOPE_ARGUMENT_TENSOR:
        value = box_tensor(argument->as.tensor);
        break;
    case OPSCOPE_ARGUMENT_TENSORS:
    case OPSCOPE_ARGUMENT_INTS:
        value.kind = OPSCOPE_VALUE_LIST;
        value.items = argument->kind == OPSCOPE_ARGUMENT_INTS ? box_ints : box_tensors;
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

/* A list of outputs is one value, like a list of inputs. */
static size_t box_list(void *arg, opscope_value *values, size_t capacity)
{
    if (capacity > 0) {
        values[0] = box_one(arg);
    }
    return 1;
}

/* ---- the call --------------------------------------------------------------------------------- */

/* Whether the operator's results fit the call's destination. */
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
            "%s: its result shares memory with its argument, so it cannot be written to out",
            op->name);
    }
    if ((op->has_node || op->spec->is_composite) && opscope_grad_mode() &&
        wants_grad(op, call->arguments)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: out= does not support gradients, but an argument requires grad; omit "
            "out=, or call under no_grad",
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

/* An in-place call of a composite operator. The tape has recorded the operators it called; the
 * write must be recorded too. */
static int call_composite_inplace(struct opscope__call *call, const opscope_argument *arguments,
                                  opscope_tensor **outputs)
{
    opscope_tensor *result = NULL;
    int status = call->op->spec->forward(call, arguments, &result);
    if (status == OPSCOPE_OK) {
        status = opscope__check_result(call->op->name, arguments[0].as.tensor, result);
    }
    if (status == OPSCOPE_OK) {
        const opscope_argument copied[] = {arguments[0], opscope__T(result)};
        status = opscope_call(opscope_operator_find("core::copy_"), copied, 2, outputs);
    }
    opscope_tensor_release(result);
    return status;
}

static int call_inplace(struct opscope__call *call, opscope_argument *arguments,
                        opscope_tensor **outputs)
{
    if (arguments[0].kind != OPSCOPE_ARGUMENT_TENSOR) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: the first argument must be a tensor",
                                   call->op->name);
    }
    return call->op->spec->is_composite ? call_composite_inplace(call, arguments, outputs)
                                        : opscope__call_inplace(call, arguments, outputs);
}

/* Runs forward and records the node. On failure all outputs are NULL. */
static int compute(struct opscope__call *call, opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const opscope_operator *op = call->op;
    bool before = call->wants_grad && opscope_grad_mode_set(false);
    int status = call->targets != NULL ? opscope__call_into_targets(call, arguments, outputs)
                 : op->is_inplace      ? call_inplace(call, arguments, outputs)
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
        const struct opscope__step step = {.op = op,
                                           .arguments = call->arguments,
                                           .sequence_nr = call->info.sequence_nr,
                                           .written = call->written,
                                           .saved = call->saved,
                                           .saved_count = call->saved_count};
        status = opscope__tape_record(&step, outputs);
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

/* `bound` has room for all arguments. With `is_checked` it has them already, complete and of kinds
 * that fit; else they are checked and completed there. The caller chooses one destination of the
 * results: outputs, list or targets. */
static inline int run(const opscope_operator *op, const opscope_argument *arguments, size_t count,
                      opscope_argument *bound, bool is_checked, opscope_tensor **outputs,
                      opscope_tensor_list *list, opscope_tensor **targets, opscope_tensor *spare)
{
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

    /* Checks the arguments inside the range, so that a call that fails is also recorded. */
    int bad = is_checked ? OPSCOPE_OK : bind(op, arguments, count, bound);
    if (bad == OPSCOPE_OK && !is_checked) {
        bad = check_results(&call);
    }
    call.wants_grad =
        bad == OPSCOPE_OK && op->has_node && opscope_grad_mode() && wants_grad(op, bound);
    if (spare != NULL && op->spec->elementwise != NULL && !op->is_inplace && !call.wants_grad) {
        call.into = spare;
    }
    if (call.wants_grad) {
        call.info.sequence_nr = opscope__tape_next_sequence();
    }
    opscope_range range;
    opscope_argument results; /* read until the range is closed */
    opscope_range_open(&range, op->range, &call.info);
    int status = bad == OPSCOPE_OK ? compute(&call, bound, made) : bad;
    if (__builtin_expect(range.snapshot != NULL, 0)) {
        if (status == OPSCOPE_OK) {
            results = (opscope_argument){
                .kind = OPSCOPE_ARGUMENT_TENSORS,
                .count = (uint32_t)(list != NULL ? list->count : op->schema.output_count),
                .as.tensors = list != NULL ? list->tensors : made};
            opscope_range_outputs(&range, list != NULL ? box_list : box_tensors, &results);
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
    opscope_argument bound[OPSCOPE_ARGUMENT_LIMIT];
    return run(op, arguments, count, bound, false, outputs, NULL, NULL, NULL);
}

int opscope__call_checked(const opscope_operator *op, opscope_argument *arguments, size_t count,
                          opscope_tensor *spare, opscope_tensor **outputs)
{
    return run(op, arguments, count, arguments, true, outputs, NULL, NULL, spare);
}

int opscope_call_list(const opscope_operator *op, const opscope_argument *arguments, size_t count,
                      opscope_tensor_list *out)
{
    opscope_argument bound[OPSCOPE_ARGUMENT_LIMIT];
    opscope_tensor_list list = {NULL, 0};
    int status = run(op, arguments, count, bound, false, NULL, &list, NULL, NULL);
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
    opscope_argument bound[OPSCOPE_ARGUMENT_LIMIT];
    return run(op, arguments, count, bound, false, NULL, NULL, into, NULL);
}
