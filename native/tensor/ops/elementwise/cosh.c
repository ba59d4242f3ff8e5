/* tensor/ops/elementwise/cosh.c -- core::cosh: the hyperbolic cosine. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(cosh, 14)

static opscope_tensor *slope(struct opscope__formula *f, opscope_tensor *x)
{
    return opscope__f1(f, "sinh", x);
}

OPSCOPE__SLOPE(inputs, slope)

const struct opscope__operator_spec OPSCOPE__OPERATOR(cosh) = {
    .schema = "cosh(Tensor self) -> Tensor",
    .doc = "The hyperbolic cosine of each element. Integers and bools are computed in float32. "
           "Definition: C cosh.",
    .samples = "t(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_inputs = 1,
};
