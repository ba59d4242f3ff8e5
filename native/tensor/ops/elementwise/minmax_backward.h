/* tensor/ops/elementwise/minmax_backward.h -- the backward of maximum and minimum: the gradient
 * goes to the selected element. */
#ifndef OPSCOPE_TENSOR_OPS_ELEMENTWISE_MINMAX_BACKWARD_H
#define OPSCOPE_TENSOR_OPS_ELEMENTWISE_MINMAX_BACKWARD_H

#include "tensor/dispatch/formula.h"

/* `loses` is the comparison that is true for an operand that is not selected, "lt" for maximum.
 * Equal elements each get half. */
static inline int opscope__minmax_backward(const struct opscope__backward *backward,
                                           const char *loses, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    const opscope_argument *both = backward->arguments;
    opscope_tensor *half = opscope__fr(&f, "mul", grad, 0.5);
    opscope_tensor *tie = opscope__f(&f, "eq", both[0], both[1]);
    opscope_tensor *share =
        opscope__f(&f, "where", opscope__T(tie), opscope__T(half), opscope__T(grad));
    for (int i = 0; i < 2; i++) {
        if (backward->wanted[i]) {
            opscope_tensor *lost = opscope__f(&f, loses, both[i], both[1 - i]);
            opscope_tensor *part =
                opscope__f(&f, "masked_fill", opscope__T(share), opscope__T(lost), opscope__I(0));
            gradients[i] = opscope__keep(opscope__sum_to(&f, part, backward->inputs[i]));
        }
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

#endif
