/* tensor/ops/exp.c -- core::exp: e to the power of each element. */
#include "tensor/formula.h"
#define OPSCOPE__CALLS_FUNCTIONS
#include "tensor/ops/loops.h"

OPSCOPE__UNARY(exp_float32, float, float, expf(a))
OPSCOPE__UNARY(exp_float64, double, double, exp(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(exp)}, .cost = 10, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, backward->saved[0]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(exp) = {
    .schema = "exp(Tensor self) -> Tensor",
    .doc = "e to the power of each element. Integers and bools are computed in float32. "
           "Definition: C exp.",
    .samples = "t(3, 4)",
    .forward = forward,
    .backward = backward,
    .saves_outputs = 1,
    .has_inplace = true,
};
