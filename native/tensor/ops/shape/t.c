/* tensor/ops/shape/t.c -- core::t: transposes a matrix. */
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    if (self->dims > 2) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: expected at most 2 dimensions, not %d (sizes %s); use "
                                   "transpose or permute",
                                   name, self->dims, opscope__shape_text(self).text);
    }
    int64_t shape[4];
    for (int i = 0; i < self->dims; i++) {
        shape[i] = opscope__sizes(self)[self->dims - 1 - i];
        shape[2 + i] = opscope__strides(self)[self->dims - 1 - i];
    }
    return opscope__tensor_view(self, self->dims, shape, shape + 2, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f1(&f, "t", grad));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(t) = {
    .schema = "t(Tensor self) -> Tensor",
    .doc = "A view of a matrix with rows and columns exchanged; a tensor with fewer than two "
           "dimensions stays unchanged.",
    .samples = "t(3, 4)",
    .forward = forward,
    .backward = backward,
    .is_view = true,
};
