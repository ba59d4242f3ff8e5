/* tensor/ops/elementwise/tan.c -- core::tan: the tangent. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(tan, 16)

static opscope_tensor *slope(struct opscope__formula *f, opscope_tensor *x)
{
    return opscope__fr(f, "add", opscope__f2(f, "mul", x, x), 1.0);
}

OPSCOPE__SLOPE(saved, slope)

const struct opscope__operator_spec OPSCOPE__OPERATOR(tan) = {
    .schema = "tan(Tensor self) -> Tensor",
    .doc = "The tangent of each element, an angle in radians. Integers and bools are computed in "
           "float32. Definition: C tan.",
    .samples = "p(3, 4) * 0.5",
    OPSCOPE__FUNCTION_SPEC,
    .saves_outputs = 1,
};
