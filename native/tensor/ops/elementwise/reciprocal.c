/* tensor/ops/reciprocal.c -- core::reciprocal: one over each element. */
#include "tensor/formula.h"
#include "tensor/ops/loops.h"

OPSCOPE__UNARY(reciprocal_float32, float, float, 1 / a)
OPSCOPE__UNARY(reciprocal_float64, double, double, 1 / a)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(reciprocal)}, .cost = 2, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *square = opscope__f2(&f, "mul", backward->saved[0], backward->saved[0]);
    opscope_tensor *slope = opscope__f1(&f, "neg", square);
    gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, slope));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(reciprocal) = {
    .schema = "reciprocal(Tensor self) -> Tensor",
    .doc = "1 / x of each element. Integers and bools are computed in float32.",
    .samples = "p(3, 4)",
    .forward = forward,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
