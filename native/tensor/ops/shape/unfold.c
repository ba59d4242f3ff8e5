/* tensor/ops/shape/unfold.c -- core::unfold: windows along a dimension. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/shape/unfold.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__unfolded(opscope__call_name(call), arguments[0].as.tensor, arguments + 1,
                             outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *self = backward->inputs[0];
    gradients[0] = opscope__keep(
        opscope__f(&f, "unfold_backward", opscope__T(backward->gradients[0]),
                   opscope__L(opscope__sizes(self), self->dims), backward->arguments[1],
                   backward->arguments[2], backward->arguments[3]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(unfold) = {
    .schema = "unfold(Tensor self, int dimension, int size, int step) -> Tensor",
    .doc = "A view of all windows of that size along a dimension, step apart: the dimension "
           "counts the windows, and a new last dimension has their elements. Windows may "
           "overlap.",
    .samples = "t(7), 0, 3, 2\n"
               "t(5, 4), 0, 2, 1\n"
               "t(5, 4), -1, 3, 1",
    .forward = forward,
    .backward = backward,
    .is_view = true,
};
