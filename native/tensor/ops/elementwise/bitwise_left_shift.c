/* tensor/ops/bitwise_left_shift.c -- core::bitwise_left_shift: bits moved up. */
#include "tensor/ops/loops.h"

OPSCOPE__BINARY(bitwise_left_shift_int32, int32_t, int32_t, (uint32_t)b < 32 ? a << b : 0)
OPSCOPE__BINARY(bitwise_left_shift_int64, int64_t, int64_t, (uint64_t)b < 64 ? a << b : 0)
OPSCOPE__BINARY(bitwise_left_shift_uint8, uint8_t, uint8_t, b < 8 ? a << b : 0)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {[OPSCOPE_INT32] = bitwise_left_shift_int32,
                  [OPSCOPE_INT64] = bitwise_left_shift_int64,
                  [OPSCOPE_UINT8] = bitwise_left_shift_uint8},
        .cost = 1};
    return opscope__elementwise(call, &spec, arguments, 2, NULL, 0, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(bitwise_left_shift) = {
    .schema = "bitwise_left_shift(Tensor self, Tensor other) -> Tensor",
    .doc = "The bits of integers moved up, zeros following; 0 where other is negative or not "
           "below the number of bits. Sizes broadcast, dtypes promote; either argument may be a "
           "number.",
    .samples = "index(99, 3, 4), index(6, 4)\n"
               "index(9, 3), 1",
    .forward = forward,
    .has_inplace = true,
    .takes_numbers = true,
};
