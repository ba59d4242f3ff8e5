/* tensor/ops/shape/tril.c -- core::tril: the elements below a diagonal. */
#include "tensor/ops/shape/triangle.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__triangle(opscope__call_name(call), arguments, false, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    return opscope__triangle_backward(backward, "tril", gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(tril) = {
    .schema = "tril(Tensor self, int diagonal=0) -> Tensor",
    .doc = "The elements on and below a diagonal of the last two dimensions, zero elsewhere. "
           "Diagonal 0 is the main one; positive ones lie above it.",
    .samples = "t(4, 5)\n"
               "t(2, 4, 3), 1\n"
               "t(4, 3), -2",
    .forward = forward,
    .backward = backward,
};
