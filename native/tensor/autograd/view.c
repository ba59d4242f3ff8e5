/* tensor/autograd/view.c -- views on the tape: one history for one piece of memory.
 *
 * A view knows its base: the tensor, itself no view, that owns the memory. The base has the history
 * of that memory. A write in place through a view v of base b, with v' = f(v), changes it to
 *
 *     b' = strided_scatter(b, f(v))      the written part depends on f, the rest on b
 *
 * so the base gets a node of that operator, and the view keeps the node of f. Other views of b
 * detect the write by the storage's version at their next use: their node belongs to an older b,
 * and they become strided_view(b'). Both operators take strides, so it does not matter which
 * operators created a view, or how many.
 *
 * Threads. Readers refresh views, possibly several at once: under the tape lock, with `version`
 * stored last. A reader that loads the storage's version from it sees all other fields.
 */
#include "tensor/autograd/view.h"

#include "base/atomics.h"
#include "tensor/autograd/locks.h"
#include "tensor/autograd/record.h"
#include "tensor/core/argument.h"

int opscope__view_note(opscope_tensor *of, opscope_tensor *view, enum opscope__view kind)
{
    if (view == of || view->storage != of->storage) {
        return OPSCOPE_OK;
    }
    view->is_view = true;
    if (kind == OPSCOPE__NO_VIEW || view->dtype != of->dtype ||
        !opscope_dtype_is_floating((opscope_dtype)view->dtype)) {
        return OPSCOPE_OK;
    }
    struct opscope__grad *grad = opscope__grad_of(view);
    if (grad == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory for a view");
    }
    const struct opscope__grad *above = of->grad;
    opscope_tensor *base = above != NULL && above->base != NULL ? above->base : of;
    if (above != NULL && above->base != NULL && above->view != OPSCOPE__VIEW) {
        kind = (enum opscope__view)above->view;
    }
    opscope_tensor *before = grad->base;
    grad->base = opscope_tensor_retain(base);
    opscope_tensor_release(before);
    grad->view = (uint8_t)kind;
    grad->version = opscope_tensor_version(view);
    return OPSCOPE_OK;
}

/* ---- refreshing --------------------------------------------------------------------------------- */

/* With the tape lock held. Stores the old node in *old, to be released without the lock. */
static int derive(opscope_tensor *view, struct opscope__grad *grad, opscope_node **old)
{
    opscope_tensor *base = grad->base;
    uint64_t version = opscope_tensor_version(view);
    if (base->grad != NULL && base->grad->requires_grad) {
        const opscope_argument arguments[] = {opscope__T(base),
                                              opscope__L(opscope__strides(base), base->dims),
                                              opscope__L(opscope__sizes(view), view->dims),
                                              opscope__L(opscope__strides(view), view->dims),
                                              opscope__I(opscope__view_offset(view, base))};
        opscope_node *node = grad->node;
        grad->node = NULL;
        int status = opscope__record_operator("core::strided_view", arguments, view);
        if (status != OPSCOPE_OK) {
            grad->node = node;
            return status;
        }
        *old = node;
    }
    /* Partner: the load in opscope__view_refresh. */
    opscope__store_release(&grad->version, version);
    return OPSCOPE_OK;
}

static bool is_fresh(const opscope_tensor *view)
{
    const struct opscope__grad *grad = view->grad;
    return grad->view != OPSCOPE__VIEW ||
           opscope__load_acquire(&grad->version) == opscope_tensor_version(view);
}

static __attribute__((noinline)) int refresh(opscope_tensor *view)
{
    struct opscope__grad *grad = view->grad;
    opscope_node *old = NULL;
    int status = OPSCOPE_OK;
    opscope__tape_lock();
    struct opscope__watch *watch = grad->watch;
    grad->watch = NULL;
    if (!is_fresh(view)) {
        status = derive(view, grad, &old);
    }
    grad->watch = watch;
    opscope__tape_unlock();
    if (old != NULL) {
        if (watch != NULL) {
            opscope__watch_renew(grad);
        }
        opscope_node_release(old);
    }
    return status;
}

int opscope__view_refresh(opscope_tensor *view)
{
    return view->grad == NULL || is_fresh(view) ? OPSCOPE_OK : refresh(view);
}
