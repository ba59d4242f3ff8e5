/* tensor/ops/elementwise/div.c -- core::div: the quotient. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY(div_float32, float, float, a / b)
OPSCOPE__BINARY(div_float64, double, double, a / b)

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__FLOAT_LOOPS(div)}, .cost = 2, .needs_floats = true)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(
            opscope__sum_to(&f, opscope__f(&f, "div", opscope__T(grad), backward->arguments[1]),
                            backward->inputs[0]));
    }
    if (backward->wanted[1]) {
        opscope_tensor *ratio =
            opscope__f(&f, "div", backward->arguments[0], backward->arguments[1]);
        ratio = opscope__f(&f, "div", opscope__T(ratio), backward->arguments[1]);
        opscope_tensor *slope = opscope__f1(&f, "neg", ratio);
        gradients[1] = opscope__keep(
            opscope__sum_to(&f, opscope__f2(&f, "mul", grad, slope), backward->inputs[1]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(div) = {
    .schema = "div(Tensor self, Tensor other) -> Tensor",
    .doc = "self / other, in floats even for integers. Sizes broadcast, dtypes promote as in "
           "PyTorch; either argument may be a number.",
    .samples = "t(3, 4), p(4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 3,
    .saves_for = {2},
    .has_inplace = true,
    .takes_numbers = true,
};
