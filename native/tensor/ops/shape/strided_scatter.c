/* tensor/ops/shape/strided_scatter.c -- core::strided_scatter: a copy with one strided view
 * overwritten. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/shape/strided.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    const opscope_tensor *src = arguments[1].as.tensor;
    opscope_tensor *whole, *part;
    int status = opscope__as_laid_out(name, arguments[0].as.tensor, &arguments[2], true, &whole);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__strided_part(name, whole, src->dims, opscope__sizes(src), &arguments[3],
                                   arguments[4].as.integer, &part);
    if (status == OPSCOPE_OK) {
        status = opscope__check_store(name, (opscope_dtype)part->dtype, (opscope_dtype)src->dtype);
        if (status == OPSCOPE_OK) {
            status = opscope__copy(part, src);
        }
        opscope_tensor_release(part);
    }
    return opscope__tensor_finish(status, whole, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    const opscope_tensor *src = backward->inputs[1];
    const opscope_argument *layout = backward->arguments + 2;
    opscope_tensor *part =
        opscope__f(&f, "strided_view", opscope__T(grad), layout[0],
                   opscope__L(opscope__sizes(src), src->dims), layout[1], layout[2]);
    if (backward->wanted[0]) {
        opscope_tensor *zeros = opscope__f(&f, "fill", opscope__T(part), opscope__I(0));
        gradients[0] =
            opscope__keep(opscope__f(&f, "strided_scatter", opscope__T(grad), opscope__T(zeros),
                                     layout[0], layout[1], layout[2]));
    }
    if (backward->wanted[1]) {
        gradients[1] = opscope__keep(part);
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(strided_scatter) = {
    .schema =
        "strided_scatter(Tensor self, Tensor src, int[] base_stride, int[] stride, int offset) -> "
        "Tensor",
    .doc = "A copy of self, with the strides base_stride, in which src replaces the elements "
           "that strided_view with src's sizes and these strides and offset would give. "
           "Autograd uses it for a base whose view was written in place.",
    .samples = "t(3, 4), t(2, 2), [4, 1], [4, 2], 1\n"
               "t(3, 4), t(4), [1, 3], [3], 2",
    .forward = forward,
    .backward = backward,
};
