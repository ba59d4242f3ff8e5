/* tensor/autograd/view.c -- views on the tape: one history for one piece of memory.
 *
 * A view knows its base, the tensor that is no view and whose memory it shows. The history of that
 * memory is the base's. Written in place through a view v of base b, with v' = f(v), it becomes
 *
 *     b' = strided_scatter(b, f(v))      what was written flows through f, the rest past it
 *
 * so the base gets a node of that operator, the view keeps the one of f. Other views of b are not
 * told: the version of the storage tells them, when they are next asked, that their node is that of
 * an older b, and they become strided_view(b'). Both operators take strides, so it does not matter
 * which operators made a view, or how many.
 *
 * Threads. Views are refreshed by readers, of which there may be many at once: under the tape lock,
 * and `version` is stored last. A reader that loads the storage's version from it sees all the
 * rest.
 */
#include "tensor/autograd/locks.h"
#include "tensor/autograd/tape.h"
#include "tensor/autograd/watch.h"
#include "tensor/convert.h"
#include "tensor/formula.h"
#include "tensor/shape.h"

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

static int record(const char *name, const opscope_argument *arguments, opscope_tensor *output)
{
    struct opscope__call call = {.op = opscope_operator_find(name),
                                 .arguments = arguments,
                                 .wants_grad = true,
                                 .info = {.sequence_nr = opscope__tape_next_sequence()}};
    return opscope__tape_record(&call, &output);
}

/* Elements from the first of the base to the first of the view. */
static int64_t offset_of(const opscope_tensor *view, const opscope_tensor *base)
{
    return (view->data - base->data) / (int64_t)opscope_dtype_bytes((opscope_dtype)base->dtype);
}

/* With the tape lock held. Leaves the old node in *old, for release without the lock. */
static int derive(opscope_tensor *view, struct opscope__grad *grad, opscope_node **old)
{
    opscope_tensor *base = grad->base;
    uint64_t version = opscope_tensor_version(view);
    if (base->grad != NULL && base->grad->requires_grad) {
        const opscope_argument arguments[] = {
            opscope__T(base), opscope__L(opscope__strides(base), base->dims),
            opscope__L(opscope__sizes(view), view->dims),
            opscope__L(opscope__strides(view), view->dims), opscope__I(offset_of(view, base))};
        opscope_node *node = grad->node;
        grad->node = NULL;
        int status = record("core::strided_view", arguments, view);
        if (status != OPSCOPE_OK) {
            grad->node = node;
            return status;
        }
        *old = node;
    }
    /* Partner: the load in opscope__view_refresh. */
    __atomic_store_n(&grad->version, version, __ATOMIC_RELEASE);
    return OPSCOPE_OK;
}

static bool is_fresh(const opscope_tensor *view)
{
    const struct opscope__grad *grad = view->grad;
    return grad->view != OPSCOPE__VIEW ||
           __atomic_load_n(&grad->version, __ATOMIC_ACQUIRE) == opscope_tensor_version(view);
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
    return is_fresh(view) ? OPSCOPE_OK : refresh(view);
}

/* ---- writing in place ---------------------------------------------------------------------------- */

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
                    "a leaf that requires grad is written in place; do it under no_grad, or on a "
                    "clone");
    }
    if (base == NULL) {
        return OPSCOPE_OK;
    }
    if (opscope_tensor_requires_grad(base) && opscope_tensor_is_leaf(base)) {
        return fail(name,
                    "a view of a leaf that requires grad is written in place; do it under no_grad, "
                    "or on a view of a clone of the leaf");
    }
    if (grad->view == OPSCOPE__VIEW_NO_GRAD) {
        return fail(name,
                    "a view made under no_grad is written in place with a gradient; make the view "
                    "outside of no_grad, or write under no_grad as well");
    }
    if (grad->view == OPSCOPE__VIEW_CUSTOM) {
        return fail(
            name, "a view that a custom function returned is written in place: how its base would "
                  "change is not known to the tape; clone it first");
    }
    if (opscope__overlaps_itself(base)) {
        return fail(name,
                    "a view is written in place whose base has elements that share memory; clone "
                    "the base first");
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
    const opscope_argument arguments[] = {
        opscope__T(base), opscope__T(target), opscope__L(opscope__strides(base), base->dims),
        opscope__L(opscope__strides(target), target->dims), opscope__I(offset_of(target, base))};
    return record("core::strided_scatter", arguments, base);
}
