/* tensor/ops/shape/unsqueeze.c -- core::unsqueeze: a dimension of size one added. */
#include "tensor/ops/shape/reshape.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    int dim;
    int status = opscope__wrap_dim(name, arguments[1].as.integer, self->dims + 1, &dim);
    if (status == OPSCOPE_OK && self->dims == OPSCOPE_DIM_LIMIT) {
        status = opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: at most %d dimensions", name,
                                     OPSCOPE_DIM_LIMIT);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    for (int i = 0; i < self->dims; i++) {
        sizes[i + (i >= dim)] = opscope__sizes(self)[i];
        strides[i + (i >= dim)] = opscope__strides(self)[i];
    }
    sizes[dim] = 1;
    strides[dim] = dim < self->dims ? opscope__sizes(self)[dim] * opscope__strides(self)[dim] : 1;
    return opscope__tensor_view(self, self->dims + 1, sizes, strides, 0, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(unsqueeze) = {
    .schema = "unsqueeze(Tensor self, int dim) -> Tensor",
    .doc = "A view with a new dimension of size 1 at that position.",
    .samples = "t(3, 4), 1\n"
               "t(3), -1",
    .forward = forward,
    .backward = opscope__resized_backward,
    .is_view = true,
};
