/* tensor/dispatch/inplace.c -- calls that write their first argument: checks and the write. */
#include "tensor/dispatch/inplace.h"

#include "tensor/autograd/grad.h"
#include "tensor/autograd/write.h"
#include "tensor/core/shape.h"
#include "tensor/kernels/convert.h"

static int check_target(const struct opscope__call *call, opscope_tensor *target)
{
    int status = opscope__check_written(call->op->name, target);
    /* A view created under no_grad is not on the tape, so a write to it would change its base
     * without a record. */
    const struct opscope__grad *grad = target->grad;
    bool is_apart = grad != NULL && grad->view == OPSCOPE__VIEW_NO_GRAD && opscope_grad_mode() &&
                    opscope_tensor_requires_grad(grad->base);
    return status == OPSCOPE_OK && (call->wants_grad || is_apart)
               ? opscope__tape_check_inplace(call->op->name, target)
               : status;
}

int opscope__check_result(const char *name, const opscope_tensor *target,
                          const opscope_tensor *result)
{
    if (!opscope__same_sizes(target, result)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: the result has sizes %s, but the written tensor has %s; they must be equal", name,
            opscope__shape_text(result).text, opscope__shape_text(target).text);
    }
    return opscope__check_store(name, target->dtype, result->dtype);
}

/* Copies the result of an operator that did not write its target itself. */
static int store(const char *name, opscope_tensor *target, opscope_tensor *result)
{
    int status = opscope__check_result(name, target, result);
    return status == OPSCOPE_OK ? opscope__copy(target, result) : status;
}

/* Whether an argument other than the first shares memory with the target but is not exactly the
 * same elements: a write during the computation would change elements not yet read. */
static bool is_read_askew(const struct opscope__call *call, const opscope_argument *arguments,
                          const opscope_tensor *target)
{
    size_t at = 1, within = 0;
    opscope_tensor *tensor;
    while (opscope__next_input(call->op, arguments, &at, &within, &tensor)) {
        if (tensor != NULL && tensor->storage == target->storage && tensor->count != 0) {
            return true;
        }
    }
    return false;
}

/* Replaces an argument in the written memory by a copy, with the argument's place on the tape:
 * backward may read it, and its history is the one before the write. */
static int hold(struct opscope__call *call, opscope_argument *argument)
{
    opscope_tensor *copy;
    int status = opscope__clone(argument->as.tensor, &copy);
    if (status == OPSCOPE_OK) {
        call->held[call->held_count++] = copy;
        status = opscope__tape_stand_in(argument->as.tensor, copy);
        argument->as.tensor = copy;
    }
    return status;
}

static int hold_all(struct opscope__call *call, opscope_argument *arguments,
                    const opscope_tensor *target)
{
    int status = OPSCOPE_OK;
    for (size_t i = 0; i < call->op->schema.count && status == OPSCOPE_OK; i++) {
        opscope_tensor *tensor =
            arguments[i].kind == OPSCOPE_ARGUMENT_TENSOR ? arguments[i].as.tensor : NULL;
        if (tensor != NULL && tensor->storage == target->storage &&
            !(opscope_tensor_requires_grad(tensor) && opscope_tensor_is_leaf(tensor))) {
            status = hold(call, &arguments[i]);
        }
    }
    return status;
}

int opscope__call_inplace(struct opscope__call *call, opscope_argument *arguments,
                          opscope_tensor **outputs)
{
    opscope_tensor *target = arguments[0].as.tensor;
    int status = check_target(call, target);
    if (status == OPSCOPE_OK && call->wants_grad) {
        call->written = target->storage;
        status = hold_all(call, arguments, target);
    } else if (status == OPSCOPE_OK && !is_read_askew(call, arguments, target)) {
        call->into = target;
    }
    opscope_tensor *result = NULL;
    if (status == OPSCOPE_OK) {
        status = call->op->spec->forward(call, arguments, &result);
    }
    if (status == OPSCOPE_OK && result != target) {
        status = store(call->op->name, target, result);
    }
    opscope_tensor_release(result);
    if (status == OPSCOPE_OK) {
        opscope__tensor_written(target);
        outputs[0] = opscope_tensor_retain(target);
    }
    return status;
}
