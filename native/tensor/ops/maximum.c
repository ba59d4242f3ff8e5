/* tensor/ops/maximum.c -- core::maximum: the larger. */
#include "tensor/formula.h"
#include "tensor/ops/loops.h"

OPSCOPE__BINARY_NUMBERS(maximum, a > b || a != a ? a : b)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__ALL_LOOPS(maximum)}, .cost = 1};
    return opscope__elementwise(call, &spec, arguments, 2, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *chosen = opscope__f(&f, "ge", backward->arguments[0], backward->arguments[1]);
    if (backward->wanted[0]) {
        opscope_tensor *part = opscope__f2(&f, "mul", grad, chosen);
        gradients[0] = opscope__keep(opscope__sum_to(&f, part, backward->inputs[0]));
    }
    if (backward->wanted[1]) {
        opscope_tensor *rest = opscope__f1(&f, "logical_not", chosen);
        opscope_tensor *part = opscope__f2(&f, "mul", grad, rest);
        gradients[1] = opscope__keep(opscope__sum_to(&f, part, backward->inputs[1]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(maximum) = {
    .schema = "maximum(Tensor self, Tensor other) -> Tensor",
    .doc = "The larger of self and other, NaN where one is NaN. Sizes broadcast, dtypes promote "
           "as in PyTorch; either argument may be a number. The gradient goes to self where both "
           "are equal.",
    .samples = "t(3, 4), t(4)\n" "i(3), i(3)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
    .has_inplace = true,
    .takes_numbers = true,
};
