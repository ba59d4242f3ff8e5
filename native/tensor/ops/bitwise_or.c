/* tensor/ops/bitwise_or.c -- core::bitwise_or: or, bit by bit. */
#include "tensor/ops/loops.h"

OPSCOPE__BINARY(bitwise_or_int32, int32_t, int32_t, a | b)
OPSCOPE__BINARY(bitwise_or_int64, int64_t, int64_t, a | b)
OPSCOPE__BINARY(bitwise_or_uint8, uint8_t, uint8_t, a | b)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {.loops = {[OPSCOPE_INT32] = bitwise_or_int32,
                                                               [OPSCOPE_INT64] = bitwise_or_int64,
                                                               [OPSCOPE_UINT8] = bitwise_or_uint8,
                                                               [OPSCOPE_BOOL] = bitwise_or_uint8},
                                                     .cost = 1};
    return opscope__elementwise(call, &spec, arguments, 2, NULL, 0, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(bitwise_or) = {
    .schema = "bitwise_or(Tensor self, Tensor other) -> Tensor",
    .doc = "The or of the bits of integers, and of bools. Sizes broadcast, dtypes promote; "
           "either argument may be a number. Not for floats.",
    .samples = "index(9, 3, 4), index(9, 4)\n"
               "b(3), b(3)",
    .forward = forward,
    .has_inplace = true,
    .takes_numbers = true,
};
