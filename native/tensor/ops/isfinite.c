/* tensor/ops/isfinite.c -- core::isfinite: whether an element is finite. */
#include "tensor/ops/loops.h"

OPSCOPE__UNARY(isfinite_float32, uint8_t, float, a - a == 0)
OPSCOPE__UNARY(isfinite_float64, uint8_t, double, a - a == 0)
OPSCOPE__UNARY(isfinite_int32, uint8_t, int32_t, a - a == 0)
OPSCOPE__UNARY(isfinite_int64, uint8_t, int64_t, a - a == 0)
OPSCOPE__UNARY(isfinite_uint8, uint8_t, uint8_t, a - a == 0)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__ALL_LOOPS(isfinite)}, .cost = 1, .gives_bool = true};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(isfinite) = {
    .schema = "isfinite(Tensor self) -> Tensor",
    .doc = "Where an element is neither infinite nor NaN, as bools.",
    .samples = "t(3, 4)\n"
               "t(3, 4) + float('inf')\n"
               "t(3, 4) * float('nan')\n"
               "i(3)",
    .forward = forward,
};
