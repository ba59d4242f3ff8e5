/* tensor/ops/create/new_tensor.h -- creates tensors from sizes and a dtype, or from those of
 * another tensor. */
#ifndef OPSCOPE_TENSOR_OPS_CREATE_NEW_TENSOR_H
#define OPSCOPE_TENSOR_OPS_CREATE_NEW_TENSOR_H

#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

/* A tensor with uninitialised elements; of dtype `otherwise` if the argument is None. */
static inline int opscope__unfilled(const struct opscope__call *call, const opscope_argument *sizes,
                                    const opscope_argument *dtype, opscope_dtype otherwise,
                                    opscope_tensor **out)
{
    int64_t wanted = dtype->kind == OPSCOPE_ARGUMENT_NONE ? (int64_t)otherwise : dtype->as.integer;
    if (wanted < 0 || wanted >= OPSCOPE_DTYPE_COUNT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: dtype %lld is unknown",
                                   opscope__call_name(call), (long long)wanted);
    }
    return opscope__tensor_empty((int)sizes->count, sizes->as.integers, (opscope_dtype)wanted, out);
}

/* A tensor with one number everywhere. */
static inline int opscope__filled(const struct opscope__call *call, const opscope_argument *sizes,
                                  const opscope_argument *dtype, opscope_dtype otherwise,
                                  const opscope_argument *number, opscope_tensor **out)
{
    opscope_tensor *made;
    int status = opscope__unfilled(call, sizes, dtype, otherwise, &made);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__check_number(opscope__call_name(call), number, (opscope_dtype)made->dtype);
    if (status != OPSCOPE_OK) {
        opscope_tensor_release(made);
        return status;
    }
    opscope__fill(made, number);
    *out = made;
    return OPSCOPE_OK;
}

/* The result of core::<name> for the sizes of arguments[0] and the dtype arguments[1], or its own
 * dtype. */
static inline int opscope__made_like(const char *name, const opscope_argument *arguments,
                                     opscope_tensor **out)
{
    struct opscope__formula f = {0};
    const opscope_tensor *self = arguments[0].as.tensor;
    const opscope_argument sizes = opscope__L(opscope__sizes(self), self->dims);
    const bool is_own = arguments[1].kind == OPSCOPE_ARGUMENT_NONE;
    *out =
        opscope__keep(opscope__f(&f, name, sizes, is_own ? opscope__I(self->dtype) : arguments[1]));
    return opscope__formula_end(&f, out, 1);
}

#endif
