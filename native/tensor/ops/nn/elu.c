/* tensor/ops/nn/elu.c -- core::elu: the exponential linear unit. */
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    opscope_tensor *is_above = opscope__f(&f, "gt", arguments[0], opscope__I(0));
    /* Above zero the exponential is not used, and must not overflow. */
    opscope_tensor *least = opscope__f(&f, "clamp", arguments[0], opscope__N, opscope__I(0));
    opscope_tensor *below =
        opscope__f(&f, "mul", opscope__T(opscope__f1(&f, "expm1", least)), arguments[1]);
    outputs[0] = opscope__keep(
        opscope__f(&f, "where", opscope__T(is_above), arguments[0], opscope__T(below)));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(elu) = {
    .schema = "elu(Tensor self, Scalar alpha=1.0) -> Tensor",
    .doc = "Each element above zero; alpha * (exp(x) - 1) below zero. Definition: Clevert, "
           "Unterthiner and Hochreiter 2015.",
    .samples = "t(3, 4)\n"
               "t(3, 4), 0.5",
    .forward = forward,
    .has_inplace = true,
    .is_composite = true,
};
