/* tensor/ops/elementwise/sin.c -- core::sin: the sine. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(sin, 16)

static opscope_tensor *slope(struct opscope__formula *f, opscope_tensor *x)
{
    return opscope__f1(f, "cos", x);
}

OPSCOPE__SLOPE(inputs, slope)

const struct opscope__operator_spec OPSCOPE__OPERATOR(sin) = {
    .schema = "sin(Tensor self) -> Tensor",
    .doc = "The sine of each element, in radians. Integers and bools are computed in float32. "
           "Definition: C sin.",
    .samples = "t(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_inputs = 1,
};
