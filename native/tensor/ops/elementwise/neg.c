/* tensor/ops/elementwise/neg.c -- core::neg: the negative. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__UNARY_NUMBERS(neg, -a)

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__NUMBER_LOOPS(neg)}, .cost = 1)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f1(&f, "neg", grad));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(neg) = {
    .schema = "neg(Tensor self) -> Tensor",
    .doc = "Minus each element; integers wrap around. Not for bool.",
    .samples = "t(3, 4)\n"
               "i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .has_inplace = true,
};
