/* tensor/ops/shape/detach.c -- core::detach: the same memory, outside of the tape. */
#include "opscope/autograd.h"
#include "tensor/core/operator.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    return opscope_tensor_detach(arguments[0].as.tensor, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(detach) = {
    .schema = "detach(Tensor self) -> Tensor",
    .doc = "A view that autograd does not follow.",
    .samples = "t(3, 4)",
    .forward = forward,
    .is_view = true,
};
