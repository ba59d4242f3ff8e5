/* tensor/ops/elementwise/cos.c -- core::cos: the cosine. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(cos, 16)

static opscope_tensor *slope(struct opscope__formula *f, opscope_tensor *x)
{
    return opscope__f1(f, "neg", opscope__f1(f, "sin", x));
}

OPSCOPE__SLOPE(inputs, slope)

const struct opscope__operator_spec OPSCOPE__OPERATOR(cos) = {
    .schema = "cos(Tensor self) -> Tensor",
    .doc = "The cosine of each element, in radians. Integers and bools are computed in float32. "
           "Definition: C cos.",
    .samples = "t(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_inputs = 1,
};
