/* tensor/ops/max.c -- core::max: the largest along a dimension, and where. */
#include "tensor/formula.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    struct opscope__formula f = {0};
    opscope_tensor *self = arguments[0].as.tensor;
    int dim;
    int status = opscope__wrap_dim(opscope__call_name(call), arguments[1].as.integer, self->dims, &dim);
    if (status != OPSCOPE_OK) {
        return status;
    }
    bool keeps = arguments[2].as.integer != 0 || self->dims == 0;
    opscope_tensor *indices =
        opscope__f(&f, "argmax", opscope__T(self), opscope__I(dim), opscope__B(self->dims > 0));
    opscope_tensor *values = opscope__f(&f, "gather", opscope__T(self), opscope__I(dim), opscope__T(indices));
    if (!keeps) {
        const opscope_argument dims = opscope__L(((int64_t[]){dim}), 1);
        indices = opscope__f(&f, "squeeze", opscope__T(indices), dims);
        values = opscope__f(&f, "squeeze", opscope__T(values), dims);
    }
    outputs[0] = opscope__keep(values);
    outputs[1] = opscope__keep(indices);
    return opscope__formula_end(&f, outputs, 2);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(max) = {
    .schema = "max(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc = "The largest element along dim, and its index (int64); of equal ones the first, which has the gradient. "
           "NaN counts as the largest.",
    .samples = "t(3, 4), 1\n" "t(3, 4), 0, True\n" "t(), 0",
    .forward = forward,
    .is_composite = true,
};
