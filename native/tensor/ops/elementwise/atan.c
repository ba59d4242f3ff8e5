/* tensor/ops/elementwise/atan.c -- core::atan: the arc tangent. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(atan, 14)

static opscope_tensor *divisor(struct opscope__formula *f, opscope_tensor *x)
{
    return opscope__fr(f, "add", opscope__f2(f, "mul", x, x), 1.0);
}

OPSCOPE__DIVISOR(inputs, divisor)

const struct opscope__operator_spec OPSCOPE__OPERATOR(atan) = {
    .schema = "atan(Tensor self) -> Tensor",
    .doc = "The angle whose tangent is each element, within pi/2 of zero. Integers and bools are "
           "computed in float32. Definition: C atan.",
    .samples = "t(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_inputs = 1,
};
