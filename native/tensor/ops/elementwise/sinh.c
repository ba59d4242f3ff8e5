/* tensor/ops/sinh.c -- core::sinh: the hyperbolic sine. */
#include "tensor/formula.h"
#include "tensor/ops/functions.h"

OPSCOPE__UNARY(sinh_float32, float, float, sinhf(a))
OPSCOPE__UNARY(sinh_float64, double, double, sinh(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(sinh)}, .cost = 14, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *slope = opscope__f1(&f, "cosh", backward->inputs[0]);
    gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, slope));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(sinh) = {
    .schema = "sinh(Tensor self) -> Tensor",
    .doc = "The hyperbolic sine of each element. Integers and bools are computed in float32. "
           "Definition: C sinh.",
    .samples = "t(3, 4)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
