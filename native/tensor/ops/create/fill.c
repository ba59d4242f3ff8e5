/* tensor/ops/create/fill.c -- core::fill: one number everywhere. */
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *self = arguments[0].as.tensor, *made;
    opscope_tensor *into = opscope__call_into(call);
    int status =
        opscope__check_number(opscope__call_name(call), &arguments[1], (opscope_dtype)self->dtype);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (into != NULL && into->dtype == self->dtype && opscope__same_sizes(into, self)) {
        made = opscope_tensor_retain(into);
    } else {
        status = opscope__tensor_empty(self->dims, opscope__sizes(self), self->dtype, &made);
    }
    if (status == OPSCOPE_OK) {
        opscope__fill(made, &arguments[1]);
        outputs[0] = made;
    }
    return status;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(fill) = {
    .schema = "fill(Tensor self, Scalar value) -> Tensor",
    .doc = "A tensor of the sizes and dtype of self with value everywhere; fill_ writes it into "
           "self. ValueError if the dtype cannot hold the value.",
    .samples = "t(3, 4), 2.5",
    .forward = forward,
    .backward = opscope__zero_backward,
    .has_inplace = true,
};
