/* tensor/ops/elementwise/expm1.c -- core::expm1: the exponential function minus one. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(expm1, 14)

static opscope_tensor *slope(struct opscope__formula *f, opscope_tensor *x)
{
    return opscope__fr(f, "add", x, 1.0);
}

OPSCOPE__SLOPE(saved, slope)

const struct opscope__operator_spec OPSCOPE__OPERATOR(expm1) = {
    .schema = "expm1(Tensor self) -> Tensor",
    .doc = "exp(x) - 1 of each element, exact near zero. Integers and bools are computed in "
           "float32. Definition: C expm1.",
    .samples = "t(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_outputs = 1,
};
