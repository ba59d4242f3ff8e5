/* tensor/ops/shape/triangle.h -- shared by tril and triu: keeps one side of a diagonal and sets the
 * other to zero. */
#ifndef OPSCOPE_TENSOR_OPS_SHAPE_TRIANGLE_H
#define OPSCOPE_TENSOR_OPS_SHAPE_TRIANGLE_H

#include <string.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

/* For the last two dimensions; arguments are the tensor and the diagonal. */
static inline int opscope__triangle(const char *name, const opscope_argument *arguments,
                                    bool is_upper, opscope_tensor **out)
{
    const opscope_tensor *self = arguments[0].as.tensor;
    if (self->dims < 2) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: at least 2 dimensions expected, not sizes %s", name,
                                   opscope__shape_text(self).text);
    }
    opscope_tensor *made;
    int status = opscope__clone(self, &made);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t rows = opscope__sizes(self)[self->dims - 2],
            columns = opscope__sizes(self)[self->dims - 1];
    int64_t item = (int64_t)opscope_dtype_bytes((opscope_dtype)self->dtype),
            shift = arguments[1].as.integer;
    shift = shift > columns ? columns : shift < -rows ? -rows : shift;
    for (int64_t i = 0; made->count > 0 && i < made->count / columns; i++) {
        int64_t edge = i % rows + shift +
                       (is_upper ? 0 : 1); /* the first column to the right of the boundary */
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        char *row = made->data + i * columns * item;
        if (is_upper) {
            memset(row, 0, (size_t)(edge * item));
        } else {
            memset(row + edge * item, 0, (size_t)((columns - edge) * item));
        }
    }
    *out = made;
    return OPSCOPE_OK;
}

/* The gradient: the same operator on the gradient. */
static inline int opscope__triangle_backward(const struct opscope__backward *backward,
                                             const char *name, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    gradients[0] = opscope__keep(
        opscope__f(&f, name, opscope__T(backward->gradients[0]), backward->arguments[1]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

#endif
