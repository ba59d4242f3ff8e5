/* tensor/ops/shape/transpose.c -- core::transpose: two dimensions exchanged. */
#include <string.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    int a, b;
    int status = opscope__wrap_dim(name, arguments[1].as.integer, self->dims, &a);
    if (status == OPSCOPE_OK) {
        status = opscope__wrap_dim(name, arguments[2].as.integer, self->dims, &b);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t shape[2 * OPSCOPE_DIM_LIMIT];
    memcpy(shape, self->shape, 2 * (size_t)self->dims * sizeof *shape);
    if (self->dims > 0) {
        shape[a] = opscope__sizes(self)[b];
        shape[b] = opscope__sizes(self)[a];
        shape[self->dims + a] = opscope__strides(self)[b];
        shape[self->dims + b] = opscope__strides(self)[a];
    }
    return opscope__tensor_view(self, self->dims, shape, shape + self->dims, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f(&f, "transpose", opscope__T(grad),
                                            backward->arguments[1], backward->arguments[2]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(transpose) = {
    .schema = "transpose(Tensor self, int dim0, int dim1) -> Tensor",
    .doc = "A view with two dimensions exchanged.",
    .samples = "t(2, 3, 4), 0, -1",
    .forward = forward,
    .backward = backward,
    .is_view = true,
};
