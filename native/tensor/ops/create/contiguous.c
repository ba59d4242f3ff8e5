/* tensor/ops/create/contiguous.c -- core::contiguous: row-major memory. */
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    opscope_tensor *self = arguments[0].as.tensor;
    return self->is_contiguous ? opscope__tensor_alias(self, outputs)
                               : opscope__clone(self, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    (void)f;
    gradients[0] = opscope__keep(grad);
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(contiguous) = {
    .schema = "contiguous(Tensor self) -> Tensor",
    .doc = "The same elements in row-major order without gaps: a view if they already are, else "
           "a copy.",
    .samples = "t(3, 4)",
    .forward = forward,
    .backward = backward,
    .is_view = true,
};
