/* tensor/inplace.c -- what an operator that writes its first argument must check and do. */
#include "tensor/autograd/tape.h"
#include "tensor/call.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

static int check_target(const struct opscope__call *call, const opscope_tensor *target)
{
    const char *name = call->op->name;
    if (target->storage->read_only) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "%s: the tensor's memory is read-only; clone it first", name);
    }
    if (opscope__overlaps_itself(target)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: several elements of the written tensor (sizes %s, strides %s) share one place in "
            "memory, as after expand; clone it first",
            name, opscope__shape_text(target).text,
            opscope__sizes_text(target->dims, opscope__strides(target)).text);
    }
    return call->wants_grad ? opscope__tape_check_inplace(name, target) : OPSCOPE_OK;
}

/* The result of an operator that did not write its target itself. */
static int store(const char *name, opscope_tensor *target, opscope_tensor *result)
{
    if (!opscope__same_sizes(target, result)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: the result has sizes %s, but the written tensor %s; they must be equal", name,
            opscope__shape_text(result).text, opscope__shape_text(target).text);
    }
    int status = opscope__check_store(name, target->dtype, result->dtype);
    return status == OPSCOPE_OK ? opscope__copy(target, result) : status;
}

/* Whether an argument other than the first shares memory with the target without being the very same
 * elements: then writing as one goes would change what is still to be read. */
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

int opscope__call_inplace(struct opscope__call *call, opscope_argument *arguments,
                          opscope_tensor **outputs)
{
    if (arguments[0].kind != OPSCOPE_ARGUMENT_TENSOR) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: the first argument must be a tensor",
                                   call->op->name);
    }
    opscope_tensor *target = arguments[0].as.tensor;
    int status = check_target(call, target);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope_tensor *before = NULL;
    if (call->wants_grad) {
        /* What backward may want to read is about to be overwritten. The copy stands on the tape where
         * the target stood. */
        status = opscope__clone(target, &before);
        if (status != OPSCOPE_OK) {
            return status;
        }
        opscope__tape_move(target, before);
        for (size_t i = 0; i < call->op->schema.count; i++) {
            if (arguments[i].kind == OPSCOPE_ARGUMENT_TENSOR && arguments[i].as.tensor == target) {
                arguments[i].as.tensor = before;
            }
        }
    } else if (!is_read_askew(call, arguments, target)) {
        call->into = target;
    }
    opscope_tensor *result = NULL;
    status = call->op->spec->forward(call, arguments, &result);
    if (status == OPSCOPE_OK && result != target) {
        status = store(call->op->name, target, result);
    }
    opscope_tensor_release(result);
    if (status == OPSCOPE_OK) {
        opscope__tensor_written(target);
        opscope__tape_written(target);
        outputs[0] = opscope_tensor_retain(target);
    } else if (before != NULL) {
        opscope__tape_move(before, target);
    }
    call->held = before;
    return status;
}
