/* tensor/ops/elementwise/exp2.c -- core::exp2: powers of two. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(exp2, 10)

static opscope_tensor *slope(struct opscope__formula *f, opscope_tensor *x)
{
    return opscope__fr(f, "mul", x, 0.6931471805599453);
}

OPSCOPE__SLOPE(saved, slope)

const struct opscope__operator_spec OPSCOPE__OPERATOR(exp2) = {
    .schema = "exp2(Tensor self) -> Tensor",
    .doc = "2 to the power of each element. Integers and bools are computed in float32. "
           "Definition: C exp2.",
    .samples = "t(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_outputs = 1,
};
