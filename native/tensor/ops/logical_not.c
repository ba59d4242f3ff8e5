/* tensor/ops/logical_not.c -- core::logical_not: whether an element is zero. */
#include "tensor/ops/loops.h"

OPSCOPE__UNARY(logical_not_float32, uint8_t, float, a == 0)
OPSCOPE__UNARY(logical_not_float64, uint8_t, double, a == 0)
OPSCOPE__UNARY(logical_not_int32, uint8_t, int32_t, a == 0)
OPSCOPE__UNARY(logical_not_int64, uint8_t, int64_t, a == 0)
OPSCOPE__UNARY(logical_not_uint8, uint8_t, uint8_t, a == 0)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__ALL_LOOPS(logical_not)}, .cost = 1, .gives_bool = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(logical_not) = {
    .schema = "logical_not(Tensor self) -> Tensor",
    .doc = "Where an element is zero, as bools.",
    .samples = "t(3, 4)\n"
               "b(3)",
    .forward = forward,
    .has_inplace = true,
};
