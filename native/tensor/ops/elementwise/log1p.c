/* tensor/ops/elementwise/log1p.c -- core::log1p: the logarithm of one plus each element. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(log1p, 14)

static opscope_tensor *divisor(struct opscope__formula *f, opscope_tensor *x)
{
    return opscope__fr(f, "add", x, 1.0);
}

OPSCOPE__DIVISOR(inputs, divisor)

const struct opscope__operator_spec OPSCOPE__OPERATOR(log1p) = {
    .schema = "log1p(Tensor self) -> Tensor",
    .doc = "log(1 + x) of each element, exact near zero; NaN below -1. Integers and bools are "
           "computed in float32. Definition: C log1p.",
    .samples = "p(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_inputs = 1,
};
