/* tensor/ops/nn/gelu.c -- core::gelu: the Gaussian error linear unit. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__UNARY(gelu_float32, float, float, 0.5f * a * (1.0f + erff(a * 0.70710678f)))
OPSCOPE__UNARY(gelu_float64, double, double, 0.5 * a * (1.0 + erf(a * 0.70710678118654752)))

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__FLOAT_LOOPS(gelu)}, .cost = 16, .needs_floats = true)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f2(&f, "gelu_backward", grad, backward->inputs[0]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(gelu) = {
    .schema = "gelu(Tensor self) -> Tensor",
    .doc = "Each element x times the normal distribution function at x. Definition: Hendrycks "
           "and Gimpel 2016, the exact form with erf.",
    .samples = "t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
