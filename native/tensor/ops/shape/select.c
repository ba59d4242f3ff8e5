/* tensor/ops/shape/select.c -- core::select: one index of a dimension, which is removed. */
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    int dim;
    int status = opscope__wrap_dim(name, arguments[1].as.integer, self->dims, &dim);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t index = arguments[2].as.integer;
    int64_t size = self->dims > 0 ? opscope__sizes(self)[dim] : 0;
    if (index < -size || index >= size) {
        return opscope_tensor_fail(OPSCOPE_ERROR_INDEX,
                                   "%s: index %lld is out of range for dimension %d of size %lld "
                                   "(sizes %s)",
                                   name, (long long)index, dim, (long long)size,
                                   opscope__shape_text(self).text);
    }
    index += index < 0 ? size : 0;
    int64_t sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    for (int i = 0; i < self->dims - 1; i++) {
        sizes[i] = opscope__sizes(self)[i + (i >= dim)];
        strides[i] = opscope__strides(self)[i + (i >= dim)];
    }
    return opscope__tensor_view(self, self->dims - 1, sizes, strides,
                                index * opscope__strides(self)[dim], outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    const opscope_tensor *self = backward->inputs[0];
    gradients[0] = opscope__keep(opscope__f(&f, "select_backward", opscope__T(grad),
                                            opscope__L(opscope__sizes(self), self->dims),
                                            backward->arguments[1], backward->arguments[2]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(select) = {
    .schema = "select(Tensor self, int dim, int index) -> Tensor",
    .doc = "A view of one index of a dimension, which is removed. A negative index counts from "
           "the end.",
    .samples = "t(3, 4), 0, 1\n"
               "t(3, 4), -1, -2",
    .forward = forward,
    .backward = backward,
    .is_view = true,
};
