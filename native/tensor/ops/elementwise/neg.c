/* tensor/ops/neg.c -- core::neg: the negative. */
#include "tensor/formula.h"
#include "tensor/ops/loops.h"

OPSCOPE__UNARY_NUMBERS(neg, -a)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {.loops = {OPSCOPE__NUMBER_LOOPS(neg)},
                                                     .cost = 1};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

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
    .backward = backward,
    .has_inplace = true,
};
