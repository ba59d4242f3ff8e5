/* tensor/ops/elementwise/logaddexp.c -- core::logaddexp: the logarithm of the sum of two
 * exponentials. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

/* The difference of equal infinities would be NaN. */
OPSCOPE__BINARY(logaddexp_float32, float, float,
                (a > b ? a : b) + (a == b ? 0.693147181f : log1pf(expf(-fabsf(a - b)))))
OPSCOPE__BINARY(logaddexp_float64, double, double,
                (a > b ? a : b) + (a == b ? 0.6931471805599453 : log1p(exp(-fabs(a - b)))))

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__FLOAT_LOOPS(logaddexp)}, .cost = 20)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    for (int i = 0; i < 2; i++) {
        if (backward->wanted[i]) {
            opscope_tensor *away =
                opscope__f2(&f, "sub", backward->inputs[i], backward->inputs[1 - i]);
            opscope_tensor *slope = opscope__f2(&f, "mul", grad, opscope__f1(&f, "sigmoid", away));
            gradients[i] = opscope__keep(opscope__sum_to(&f, slope, backward->inputs[i]));
        }
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(logaddexp) = {
    .schema = "logaddexp(Tensor self, Tensor other) -> Tensor",
    .doc = "log(exp(self) + exp(other)), without overflow. Sizes broadcast; for floats.",
    .samples = "t(3, 4), t(4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 3,
};
