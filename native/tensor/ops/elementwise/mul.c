/* tensor/ops/elementwise/mul.c -- core::mul: the product. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY_NUMBERS(mul, a *b)

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__ALL_LOOPS(mul)}, .cost = 1)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(
            opscope__sum_to(&f, opscope__f(&f, "mul", opscope__T(grad), backward->arguments[1]),
                            backward->inputs[0]));
    }
    if (backward->wanted[1]) {
        gradients[1] = opscope__keep(
            opscope__sum_to(&f, opscope__f(&f, "mul", opscope__T(grad), backward->arguments[0]),
                            backward->inputs[1]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(mul) = {
    .schema = "mul(Tensor self, Tensor other) -> Tensor",
    .doc = "self * other. Sizes broadcast, dtypes promote as in PyTorch; either argument may be "
           "a number. For bools: logical and.",
    .samples = "t(3, 4), t(4)\n"
               "i(3), i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 3,
    .saves_for = {2, 1},
    .has_inplace = true,
    .takes_numbers = true,
};
