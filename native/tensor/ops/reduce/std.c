/* tensor/ops/reduce/std.c -- core::std: the standard deviation over dimensions. */
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    opscope_tensor *spread = opscope__do(&f, "var", arguments, 4);
    /* If the variance is zero, the square root has an infinite slope; the gradient should be zero
     * there, not NaN. */
    opscope_tensor *is_flat = opscope__f(&f, "eq", opscope__T(spread), opscope__I(0));
    opscope_tensor *root = opscope__f1(
        &f, "sqrt",
        opscope__f(&f, "masked_fill", opscope__T(spread), opscope__T(is_flat), opscope__I(1)));
    outputs[0] = opscope__keep(
        opscope__f(&f, "masked_fill", opscope__T(root), opscope__T(is_flat), opscope__I(0)));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(std) = {
    .schema = "std(Tensor self, int[]? dim=None, int correction=1, bool keepdim=False) -> Tensor",
    .doc = "The square root of the variance over the dimensions in dim (all if it is absent or "
           "empty), with the number of elements minus correction as the divisor. For floats.",
    .samples = "t(3, 4)\n"
               "t(3, 4), [1], 0, True",
    .forward = forward,
    .is_composite = true,
};
