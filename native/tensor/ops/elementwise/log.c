/* tensor/ops/elementwise/log.c -- core::log: the natural logarithm. */
#include "tensor/ops/elementwise/functions.h"

OPSCOPE__FLOAT_FUNCTION(log, 10)

static opscope_tensor *divisor(struct opscope__formula *f, opscope_tensor *x)
{
    (void)f;
    return x;
}

OPSCOPE__DIVISOR(inputs, divisor)

const struct opscope__operator_spec OPSCOPE__OPERATOR(log) = {
    .schema = "log(Tensor self) -> Tensor",
    .doc = "The natural logarithm of each element; NaN below zero. Integers and bools are "
           "computed in float32. Definition: C log.",
    .samples = "p(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_inputs = 1,
};
