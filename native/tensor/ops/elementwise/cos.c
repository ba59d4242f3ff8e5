/* tensor/ops/cos.c -- core::cos: the cosine. */
#include "tensor/formula.h"
#define OPSCOPE__CALLS_FUNCTIONS
#include "tensor/ops/loops.h"

OPSCOPE__UNARY(cos_float32, float, float, cosf(a))
OPSCOPE__UNARY(cos_float64, double, double, cos(a))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__FLOAT_LOOPS(cos)}, .cost = 16, .needs_floats = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *slope = opscope__f1(&f, "sin", backward->inputs[0]);
    slope = opscope__f1(&f, "neg", slope);
    gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, slope));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(cos) = {
    .schema = "cos(Tensor self) -> Tensor",
    .doc = "The cosine of each element, in radians. Integers and bools are computed in float32. "
           "Definition: C cos.",
    .samples = "t(3, 4)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
