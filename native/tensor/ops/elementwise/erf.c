/* tensor/ops/elementwise/erf.c -- core::erf: the error function. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(erf, 14)

static opscope_tensor *slope(struct opscope__formula *f, opscope_tensor *x)
{
    opscope_tensor *square = opscope__f2(f, "mul", x, x);
    opscope_tensor *bell = opscope__f1(f, "exp", opscope__f1(f, "neg", square));
    return opscope__fr(f, "mul", bell, 1.1283791670955126);
}

OPSCOPE__SLOPE(inputs, slope)

const struct opscope__operator_spec OPSCOPE__OPERATOR(erf) = {
    .schema = "erf(Tensor self) -> Tensor",
    .doc = "The error function of each element. Integers and bools are computed in float32. "
           "Definition: C erf.",
    .samples = "t(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_inputs = 1,
};
