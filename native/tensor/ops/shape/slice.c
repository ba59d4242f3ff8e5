/* tensor/ops/shape/slice.c -- core::slice: a range of a dimension, with a step. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/shape/slice.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const opscope_tensor *self = arguments[0].as.tensor;
    struct opscope__slice slice;
    int status = opscope__slice_of(opscope__call_name(call), self->dims, opscope__sizes(self),
                                   arguments + 1, &slice);
    return status == OPSCOPE_OK ? opscope__slice_view(self, &slice, outputs) : status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    const opscope_tensor *self = backward->inputs[0];
    gradients[0] = opscope__keep(opscope__f(&f, "slice_backward", opscope__T(grad),
                                            opscope__L(opscope__sizes(self), self->dims),
                                            backward->arguments[1], backward->arguments[2],
                                            backward->arguments[3], backward->arguments[4]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(slice) = {
    .schema = "slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> "
              "Tensor",
    .doc = "A view of a dimension from start up to but excluding end, with a step that may be "
           "negative, and bounds as in a Python slice.",
    .samples = "t(5, 4), 0, 1, 4, 2\n"
               "t(5, 4), 1, None, None, -1",
    .forward = forward,
    .backward = backward,
    .is_view = true,
};
