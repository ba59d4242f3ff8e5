/* tensor/ops/create/clone.c -- core::clone: a copy. */
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    return opscope__clone(arguments[0].as.tensor, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    (void)f;
    gradients[0] = opscope__keep(grad);
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(clone) = {
    .schema = "clone(Tensor self) -> Tensor",
    .doc = "A contiguous copy.",
    .samples = "t(3, 4)",
    .forward = forward,
    .backward = backward,
};
