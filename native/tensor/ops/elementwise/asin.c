/* tensor/ops/elementwise/asin.c -- core::asin: the arc sine. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(asin, 14)

static opscope_tensor *slope(struct opscope__formula *f, opscope_tensor *x)
{
    opscope_tensor *square = opscope__f2(f, "mul", x, x);
    return opscope__f1(f, "rsqrt", opscope__f(f, "sub", opscope__R(1), opscope__T(square)));
}

OPSCOPE__SLOPE(inputs, slope)

const struct opscope__operator_spec OPSCOPE__OPERATOR(asin) = {
    .schema = "asin(Tensor self) -> Tensor",
    .doc = "The angle whose sine is each element, within pi/2 of zero; NaN beyond 1. Integers "
           "and bools are computed in float32. Definition: C asin.",
    .samples = "p(3, 4) * 0.5",
    OPSCOPE__FUNCTION_SPEC,
    .saves_inputs = 1,
};
