/* tensor/ops/erf.c -- core::erf: the error function. */
#define OPSCOPE__CALLS_FUNCTIONS
#include "tensor/formula.h"
#include "tensor/ops/loops.h"

OPSCOPE__UNARY(erf_float32, float, float, erff(a))
OPSCOPE__UNARY(erf_float64, double, double, erf(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(erf)}, .cost = 14, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *square = opscope__f2(&f, "mul", backward->inputs[0], backward->inputs[0]);
    opscope_tensor *bell = opscope__f1(&f, "exp", opscope__f1(&f, "neg", square));
    opscope_tensor *slope = opscope__fr(&f, "mul", bell, 1.1283791670955126);
    gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, slope));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(erf) = {
    .schema = "erf(Tensor self) -> Tensor",
    .doc = "The error function of each element. Integers and bools are computed in float32. "
           "Definition: C erf.",
    .samples = "t(3, 4)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
