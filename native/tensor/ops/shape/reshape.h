/* tensor/ops/shape/reshape.h -- the same elements in other sizes, for view and reshape; their
 * backward, also for squeeze and unsqueeze. */
#ifndef OPSCOPE_TENSOR_OPS_SHAPE_RESHAPE_H
#define OPSCOPE_TENSOR_OPS_SHAPE_RESHAPE_H

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

static inline int opscope__resized(const struct opscope__call *call,
                                   const opscope_argument *arguments, bool may_copy,
                                   opscope_tensor **out)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    if (arguments[1].count > OPSCOPE_DIM_LIMIT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: at most %d dimensions, not %u", name,
                                   OPSCOPE_DIM_LIMIT, arguments[1].count);
    }
    int dims = (int)arguments[1].count;
    int64_t sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    int status = opscope__infer_sizes(name, self->count, dims, arguments[1].as.integers, sizes);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (opscope__view_strides(self, dims, sizes, strides)) {
        return opscope__tensor_view(self, dims, sizes, strides, 0, out);
    }
    if (!may_copy) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: sizes %s with strides %s cannot be seen as %s without a copy; use reshape", name,
            opscope__shape_text(self).text,
            opscope__sizes_text(self->dims, opscope__strides(self)).text,
            opscope__sizes_text(dims, sizes).text);
    }
    opscope_tensor *copy;
    status = opscope__clone(self, &copy);
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_view(copy, dims, sizes, NULL, 0, out);
        opscope_tensor_release(copy);
    }
    return status;
}

static inline int opscope__resized_backward(const struct opscope__backward *backward,
                                            opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *self = backward->inputs[0];
    gradients[0] = opscope__keep(opscope__f(&f, "reshape", opscope__T(backward->gradients[0]),
                                            opscope__L(opscope__sizes(self), self->dims)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

#endif
