/* tensor/ops/create/full_like.c -- core::full_like: one number in the sizes of another tensor. */
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    opscope_tensor *self = arguments[0].as.tensor;
    opscope_argument dtype =
        arguments[2].kind != OPSCOPE_ARGUMENT_NONE ? arguments[2] : opscope__I(self->dtype);
    outputs[0] = opscope__keep(
        opscope__f(&f, "full", opscope__L(opscope__sizes(self), self->dims), arguments[1], dtype));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(full_like) = {
    .schema = "full_like(Tensor self, Scalar fill_value, *, dtype? dtype=None) -> Tensor",
    .doc = "A new contiguous tensor of self's sizes, fill_value everywhere; self's dtype unless "
           "dtype is given.",
    .samples = "t(3, 4), 2.5\n"
               "t(2), 2, dtype=int32",
    .forward = forward,
    .is_composite = true,
};
