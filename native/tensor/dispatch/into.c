/* tensor/dispatch/into.c -- calls that write their results into given tensors ("out="). */
#include "tensor/dispatch/into.h"

#include "opscope/autograd.h"
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/kernels/convert.h"

/* Whether an argument may share memory with a target. */
static bool is_read(const struct opscope__call *call, const opscope_argument *arguments,
                    const opscope_tensor *target)
{
    size_t at = 0, within = 0;
    opscope_tensor *tensor;
    while (opscope__next_input(call->op, arguments, &at, &within, &tensor)) {
        if (tensor != NULL && tensor->storage == target->storage && tensor->count != 0) {
            return true;
        }
    }
    return false;
}

static int check_target(const struct opscope__call *call, const opscope_tensor *target)
{
    if (opscope_grad_mode() && opscope_tensor_requires_grad(target)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: out requires grad, but the tape does not record writes to it; "
            "omit out=, or call under no_grad",
            call->op->name);
    }
    return opscope__check_written(call->op->name, target);
}

/* An empty target takes the result's sizes. */
static int store(const char *name, opscope_tensor **target, opscope_tensor *result)
{
    int status = opscope__check_store(name, (*target)->dtype, result->dtype);
    if (status != OPSCOPE_OK || result == *target) {
        return status;
    }
    if ((*target)->count == 0 && !opscope__same_sizes(*target, result)) {
        opscope_tensor *made;
        status = opscope__convert(result, (opscope_dtype)(*target)->dtype, &made);
        if (status == OPSCOPE_OK) {
            opscope_tensor_release(*target);
            *target = made;
        }
        return status;
    }
    if (!opscope__same_sizes(*target, result)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: the result has sizes %s, but out has %s; they must be equal, or out must be empty",
            name, opscope__shape_text(result).text, opscope__shape_text(*target).text);
    }
    return opscope__copy(*target, result);
}

int opscope__call_into_targets(struct opscope__call *call, const opscope_argument *arguments,
                               opscope_tensor **outputs)
{
    const opscope_operator *op = call->op;
    size_t count = op->schema.output_count;
    int status = OPSCOPE_OK;
    for (size_t i = 0; i < count && status == OPSCOPE_OK; i++) {
        status = check_target(call, call->targets[i]);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (count == 1 && !is_read(call, arguments, call->targets[0])) {
        call->into = call->targets[0];
    }
    status = op->spec->forward(call, arguments, outputs);
    for (size_t i = 0; i < count && status == OPSCOPE_OK; i++) {
        status = store(op->name, &call->targets[i], outputs[i]);
        if (status == OPSCOPE_OK) {
            opscope__tensor_written(call->targets[i]);
            opscope_tensor_release(outputs[i]);
            outputs[i] = opscope_tensor_retain(call->targets[i]);
        }
    }
    return status;
}
