/* tensor/autograd/write.c -- writes in place on the tape: which are allowed, and how they change
 * the history of a view's base (view.c). */
#include "tensor/autograd/write.h"

#include "tensor/autograd/record.h"
#include "tensor/autograd/view.h"
#include "tensor/core/argument.h"
#include "tensor/core/shape.h"

static int fail(const char *name, const char *what)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "%s: %s", name, what);
}

int opscope__tape_check_inplace(const char *name, opscope_tensor *target)
{
    const struct opscope__grad *grad = target->grad;
    opscope_tensor *base = grad != NULL ? grad->base : NULL;
    if (base == NULL && opscope_tensor_requires_grad(target) && opscope_tensor_is_leaf(target)) {
        return fail(name,
                    "cannot write in place to a leaf that requires grad; write under no_grad, or "
                    "to a clone");
    }
    if (base == NULL) {
        return OPSCOPE_OK;
    }
    if (opscope_tensor_requires_grad(base) && opscope_tensor_is_leaf(base)) {
        return fail(name,
                    "cannot write in place to a view of a leaf that requires grad; write under "
                    "no_grad, or to a view of a clone of the leaf");
    }
    if (grad->view == OPSCOPE__VIEW_NO_GRAD) {
        return fail(name,
                    "cannot write in place, with a gradient, to a view created under no_grad; "
                    "create the view outside of no_grad, or write under no_grad");
    }
    if (grad->view == OPSCOPE__VIEW_CUSTOM) {
        return fail(
            name, "cannot write in place to a view that a custom function returned: the tape does "
                  "not know how this changes its base; clone it first");
    }
    if (opscope__overlaps_itself(base)) {
        return fail(name,
                    "cannot write in place to a view whose base has elements that share memory; "
                    "clone the base first");
    }
    return OPSCOPE_OK;
}

int opscope__tape_stand_in(opscope_tensor *tensor, opscope_tensor *copy)
{
    if (!opscope_tensor_requires_grad(tensor)) {
        return OPSCOPE_OK;
    }
    const struct opscope__grad *from = tensor->grad;
    struct opscope__grad *to = opscope__grad_of(copy);
    if (to == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory for a write in place");
    }
    to->requires_grad = true;
    to->node = opscope_node_retain(from->node);
    to->output = from->output;
    return OPSCOPE_OK;
}

int opscope__tape_rebase(opscope_tensor *target)
{
    opscope_tensor *base = target->grad != NULL ? target->grad->base : NULL;
    if (base == NULL) {
        return OPSCOPE_OK;
    }
    const opscope_argument arguments[] = {opscope__T(base), opscope__T(target),
                                          opscope__L(opscope__strides(base), base->dims),
                                          opscope__L(opscope__strides(target), target->dims),
                                          opscope__I(opscope__view_offset(target, base))};
    return opscope__record_operator("core::strided_scatter", arguments, base);
}
