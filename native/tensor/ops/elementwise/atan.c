/* tensor/ops/elementwise/atan.c -- core::atan: the arc tangent. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(atan, 14)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *square = opscope__f2(&f, "mul", backward->inputs[0], backward->inputs[0]);
    opscope_tensor *below = opscope__fr(&f, "add", square, 1.0);
    gradients[0] = opscope__keep(opscope__f2(&f, "div", grad, below));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(atan) = {
    .schema = "atan(Tensor self) -> Tensor",
    .doc = "The angle whose tangent is each element, within pi/2 of zero. Integers and bools are "
           "computed in float32. Definition: C atan.",
    .samples = "t(3, 4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
