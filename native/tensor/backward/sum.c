/* tensor/backward/sum.c -- adding gradients up.
 *
 * In a walk whose gradients are themselves on the tape (create_graph: grad mode is on) nothing is
 * added in place.
 */
#include "tensor/backward/sum.h"

#include "base/atomics.h"
#include "opscope/autograd.h"
#include "tensor/autograd/locks.h"
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/kernels/convert.h"

static bool is_sole_owner(const opscope_tensor *tensor)
{
    return opscope__load_acquire(&tensor->reference_count) == 1 &&
           opscope__load_acquire(&tensor->storage->reference_count) == 1 &&
           tensor->storage->allocator != NULL && !tensor->is_view && tensor->is_contiguous;
}

/* *sum becomes the sum, through the operator, so that it is seen. */
static int add(opscope_tensor **sum, opscope_tensor *more, bool in_place)
{
    opscope_argument arguments[] = {{OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = *sum}},
                                    {OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = more}}};
    opscope_tensor *result;
    int status = opscope_call(opscope_operator_find(in_place ? "core::add_" : "core::add"),
                              arguments, 2, &result);
    if (status == OPSCOPE_OK) {
        opscope_tensor_release(*sum);
        *sum = result;
    }
    return status;
}

int opscope__sum_add(opscope_tensor **sum, opscope_tensor *gradient)
{
    if (*sum == NULL) {
        *sum = gradient;
        return OPSCOPE_OK;
    }
    int status = add(sum, gradient, !opscope_grad_mode() && is_sole_owner(*sum));
    opscope_tensor_release(gradient);
    return status;
}

/* Keeps the first gradient itself if it has no other owner, else a copy of it. */
static int keep_first(opscope_tensor **kept, opscope_tensor *gradient)
{
    if (opscope_grad_mode()) {
        const opscope_argument argument = {OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = gradient}};
        return opscope_call(opscope_operator_find("core::clone"), &argument, 1, kept);
    }
    if (is_sole_owner(gradient) && !opscope_tensor_requires_grad(gradient)) {
        *kept = opscope_tensor_retain(gradient);
        return OPSCOPE_OK;
    }
    return opscope__clone(gradient, kept);
}

int opscope__accumulate(const void *owner, opscope_tensor **kept, opscope_tensor *gradient)
{
    int status = opscope__sum_lock(owner);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = *kept == NULL ? keep_first(kept, gradient) : add(kept, gradient, !opscope_grad_mode());
    opscope__sum_unlock(owner);
    return status;
}

int opscope__gradient_fit(const char *name, const opscope_tensor *of, opscope_tensor **gradient)
{
    if (!opscope__same_sizes(of, *gradient)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: a gradient of sizes %s for a tensor of sizes %s; they must be "
            "equal",
            name, opscope__shape_text(*gradient).text, opscope__shape_text(of).text);
    }
    if (of->dtype == (*gradient)->dtype) {
        return OPSCOPE_OK;
    }
    opscope_tensor *converted;
    int status;
    if (opscope_grad_mode()) {
        const opscope_argument arguments[] = {{OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = *gradient}},
                                              {OPSCOPE_ARGUMENT_INT, 0, {.integer = of->dtype}}};
        status = opscope_call(opscope_operator_find("core::to"), arguments, 2, &converted);
    } else {
        status = opscope__convert(*gradient, (opscope_dtype)of->dtype, &converted);
    }
    if (status == OPSCOPE_OK) {
        opscope_tensor_release(*gradient);
        *gradient = converted;
    }
    return status;
}
