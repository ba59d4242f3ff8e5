/* tensor/ops/nn/leaky_relu.c -- core::leaky_relu: the leaky rectifier. */
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    opscope_tensor *is_above = opscope__f(&f, "gt", arguments[0], opscope__I(0));
    opscope_tensor *below = opscope__f(&f, "mul", arguments[0], arguments[1]);
    outputs[0] = opscope__keep(
        opscope__f(&f, "where", opscope__T(is_above), arguments[0], opscope__T(below)));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(leaky_relu) = {
    .schema = "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    .doc = "Each element above zero; negative_slope times the element below zero.",
    .samples = "t(3, 4)\n"
               "t(3, 4), 0.5",
    .forward = forward,
    .has_inplace = true,
    .is_composite = true,
};
