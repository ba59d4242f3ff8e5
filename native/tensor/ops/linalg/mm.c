/* tensor/ops/linalg/mm.c -- core::mm: the product of two matrices. */
#include "tensor/ops/linalg/product.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__product(opscope__call_name(call), arguments[0].as.tensor,
                            arguments[1].as.tensor, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    if (backward->wanted[0]) {
        opscope_tensor *turned = opscope__f1(&f, "t", backward->inputs[1]);
        gradients[0] = opscope__keep(opscope__f2(&f, "mm", grad, turned));
    }
    if (backward->wanted[1]) {
        opscope_tensor *turned = opscope__f1(&f, "t", backward->inputs[0]);
        gradients[1] = opscope__keep(opscope__f2(&f, "mm", turned, grad));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(mm) = {
    .schema = "mm(Tensor self, Tensor mat2) -> Tensor",
    .doc = "The product of two matrices of one dtype, n by k and k by m.",
    .samples = "t(3, 4), t(4, 5)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
    .saves_for = {2, 1},
};
