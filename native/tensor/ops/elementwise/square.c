/* tensor/ops/elementwise/square.c -- core::square: the square. */
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    outputs[0] = opscope__keep(opscope__f(&f, "pow", arguments[0], opscope__I(2)));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(square) = {
    .schema = "square(Tensor self) -> Tensor",
    .doc = "The square of each element.",
    .samples = "t(3, 4)\n"
               "i(3)",
    .forward = forward,
    .has_inplace = true,
    .is_composite = true,
};
