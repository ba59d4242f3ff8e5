/* tensor/ops/nn/silu.c -- core::silu: each element times its sigmoid. */
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    opscope_tensor *share = opscope__f(&f, "sigmoid", arguments[0]);
    outputs[0] = opscope__keep(opscope__f(&f, "mul", arguments[0], opscope__T(share)));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(silu) = {
    .schema = "silu(Tensor self) -> Tensor",
    .doc = "x * sigmoid(x) for each element x. Definition: Elfwing, Uchibe and Doya 2017.",
    .samples = "t(3, 4)",
    .forward = forward,
    .has_inplace = true,
    .is_composite = true,
};
