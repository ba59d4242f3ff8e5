/* tensor/ops/shape/strided_view.c -- core::strided_view: a view by strides of a base with given
 * strides. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/shape/strided.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *base;
    int status = opscope__as_laid_out(name, arguments[0].as.tensor, &arguments[1], false, &base);
    if (status == OPSCOPE_OK) {
        status =
            opscope__strided_part(name, base, (int)arguments[2].count, arguments[2].as.integers,
                                  &arguments[3], arguments[4].as.integer, outputs);
        opscope_tensor_release(base);
    }
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *self = backward->inputs[0];
    gradients[0] = opscope__keep(
        opscope__f(&f, "strided_view_backward", opscope__T(backward->gradients[0]),
                   opscope__L(opscope__sizes(self), self->dims), backward->arguments[1],
                   backward->arguments[3], backward->arguments[4]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(strided_view) = {
    .schema =
        "strided_view(Tensor self, int[] base_stride, int[] size, int[] stride, int offset) -> "
        "Tensor",
    .doc = "A view of self, which must have the strides base_stride and is copied otherwise. "
           "The view has the given sizes and strides, and begins offset elements after the "
           "first. Autograd uses it for a view whose base was written in place.",
    .samples = "t(3, 4), [4, 1], [2, 2], [4, 2], 1\n"
               "t(3, 4), [1, 3], [4], [3], 2\n"
               "t(4), [1], [3, 2], [1, 1], 0",
    .forward = forward,
    .backward = backward,
    .is_view = true,
};
