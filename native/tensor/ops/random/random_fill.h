/* tensor/ops/random/random_fill.h -- creates tensors of random numbers. */
#ifndef OPSCOPE_TENSOR_OPS_RANDOM_RANDOM_FILL_H
#define OPSCOPE_TENSOR_OPS_RANDOM_RANDOM_FILL_H

#include "tensor/core/shape.h"
#include "tensor/kernels/random.h"
#include "tensor/ops/create/new_tensor.h"

/* A contiguous tensor like `self`, or self itself in place; the caller writes all of it. */
static inline int opscope__random_like(struct opscope__call *call, opscope_tensor *self,
                                       opscope_tensor **out)
{
    if (self->dtype != OPSCOPE_FLOAT32 && self->dtype != OPSCOPE_FLOAT64) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_TYPE, "%s: not defined for %s (sizes %s); floats expected",
            opscope__call_name(call), opscope_dtype_name((opscope_dtype)self->dtype),
            opscope__shape_text(self).text);
    }
    if (opscope__call_into(call) == self && self->is_contiguous) {
        *out = opscope_tensor_retain(self);
        return OPSCOPE_OK;
    }
    return opscope__tensor_empty(self->dims, opscope__sizes(self), (opscope_dtype)self->dtype, out);
}

static inline void opscope__random_put(const opscope_tensor *tensor, int64_t place, double value)
{
    if (tensor->dtype == OPSCOPE_FLOAT32) {
        ((float *)(void *)tensor->data)[place] = (float)value;
    } else {
        ((double *)(void *)tensor->data)[place] = value;
    }
}

/* A new tensor with the sizes and dtype of the arguments, whose elements come from `draw`, which
 * gets the dtype. */
static inline int opscope__random_fill(
    const struct opscope__call *call, const opscope_argument *arguments,
    double (*draw)(opscope__stretch *stretch, opscope_dtype dtype), opscope_tensor **out)
{
    opscope_tensor *made;
    int status = opscope__unfilled(call, &arguments[0], &arguments[1], OPSCOPE_FLOAT32, &made);
    if (status != OPSCOPE_OK) {
        return status;
    }
    const opscope_dtype dtype = (opscope_dtype)made->dtype;
    if (dtype != OPSCOPE_FLOAT32 && dtype != OPSCOPE_FLOAT64) {
        opscope_tensor_release(made);
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE,
                                   "%s: not defined for %s; float32 or float64 expected",
                                   opscope__call_name(call), opscope_dtype_name(dtype));
    }
    opscope__stretch stretch = opscope__stretch_take((uint64_t)made->count);
    for (int64_t i = 0; i < made->count; i++) {
        opscope__random_put(made, i, draw(&stretch, dtype));
    }
    *out = made;
    return OPSCOPE_OK;
}

/* The gradient is zero: the result does not depend on the tensor's elements. */
static inline int opscope__random_backward(const struct opscope__backward *backward,
                                           opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(
            opscope__f(&f, "fill", opscope__T(backward->gradients[0]), opscope__I(0)));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

#endif
