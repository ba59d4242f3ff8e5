/* tensor/ops/elementwise/add_backward.h -- the backward of add and sub. */
#ifndef OPSCOPE_TENSOR_OPS_ELEMENTWISE_ADD_BACKWARD_H
#define OPSCOPE_TENSOR_OPS_ELEMENTWISE_ADD_BACKWARD_H

#include "tensor/dispatch/formula.h"

/* The other operand's gradient is scaled by alpha, and for sub negated. */
static inline int opscope__add_backward(const struct opscope__backward *backward, bool negates,
                                        opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(opscope__sum_to(&f, grad, backward->inputs[0]));
    }
    if (backward->wanted[1]) {
        opscope_tensor *scaled = opscope__f(&f, "mul", opscope__T(grad), backward->arguments[2]);
        scaled = negates ? opscope__f1(&f, "neg", scaled) : scaled;
        gradients[1] = opscope__keep(opscope__sum_to(&f, scaled, backward->inputs[1]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

#endif
