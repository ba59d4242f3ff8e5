/* tensor/ops/log.c -- core::log: the natural logarithm. */
#include "tensor/formula.h"
#define OPSCOPE__CALLS_FUNCTIONS
#include "tensor/ops/loops.h"

OPSCOPE__UNARY(log_float32, float, float, logf(a))
OPSCOPE__UNARY(log_float64, double, double, log(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(log)}, .cost = 10, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f2(&f, "div", grad, backward->inputs[0]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(log) = {
    .schema = "log(Tensor self) -> Tensor",
    .doc = "The natural logarithm of each element; NaN below zero. Integers and bools are "
           "computed in float32. Definition: C log.",
    .samples = "p(3, 4)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
