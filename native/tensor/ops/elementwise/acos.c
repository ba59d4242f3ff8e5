/* tensor/ops/elementwise/acos.c -- core::acos: the arc cosine. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(acos, 14)

static opscope_tensor *slope(struct opscope__formula *f, opscope_tensor *x)
{
    opscope_tensor *square = opscope__f2(f, "mul", x, x);
    opscope_tensor *left = opscope__f(f, "sub", opscope__R(1), opscope__T(square));
    return opscope__f1(f, "neg", opscope__f1(f, "rsqrt", left));
}

OPSCOPE__SLOPE(inputs, slope)

const struct opscope__operator_spec OPSCOPE__OPERATOR(acos) = {
    .schema = "acos(Tensor self) -> Tensor",
    .doc = "The angle whose cosine is each element, from 0 to pi; NaN beyond 1. Integers and "
           "bools are computed in float32. Definition: C acos.",
    .samples = "p(3, 4) * 0.5",
    OPSCOPE__FUNCTION_SPEC,
    .saves_inputs = 1,
};
