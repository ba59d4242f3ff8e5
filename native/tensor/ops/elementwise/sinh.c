/* tensor/ops/elementwise/sinh.c -- core::sinh: the hyperbolic sine. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(sinh, 14)

static opscope_tensor *slope(struct opscope__formula *f, opscope_tensor *x)
{
    return opscope__f1(f, "cosh", x);
}

OPSCOPE__SLOPE(inputs, slope)

const struct opscope__operator_spec OPSCOPE__OPERATOR(sinh) = {
    .schema = "sinh(Tensor self) -> Tensor",
    .doc = "The hyperbolic sine of each element. Integers and bools are computed in float32. "
           "Definition: C sinh.",
    .samples = "t(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_inputs = 1,
};
