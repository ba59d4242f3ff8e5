/* tensor/ops/bitwise_not.c -- core::bitwise_not: every bit the other way. */
#include "tensor/ops/loops.h"

OPSCOPE__UNARY(bitwise_not_int32, int32_t, int32_t, ~a)
OPSCOPE__UNARY(bitwise_not_int64, int64_t, int64_t, ~a)
OPSCOPE__UNARY(bitwise_not_uint8, uint8_t, uint8_t, ~a)
OPSCOPE__UNARY(bitwise_not_bool, uint8_t, uint8_t, a == 0)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {.loops = {[OPSCOPE_INT32] = bitwise_not_int32,
                                                               [OPSCOPE_INT64] = bitwise_not_int64,
                                                               [OPSCOPE_UINT8] = bitwise_not_uint8,
                                                               [OPSCOPE_BOOL] = bitwise_not_bool},
                                                     .cost = 1};
    return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(bitwise_not) = {
    .schema = "bitwise_not(Tensor self) -> Tensor",
    .doc = "The bits of integers inverted; of bools, not. Not for floats.",
    .samples = "index(9, 3, 4)\n"
               "b(3)",
    .forward = forward,
    .has_inplace = true,
};
