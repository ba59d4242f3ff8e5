/* tensor/ops/all.c -- core::all: whether every element is true. */
#include "tensor/ops/reduced.h"

OPSCOPE__FOLD(all_float32, float, int64_t, int32_t, 1, s & (a != 0), s & a, uint8_t, s)
OPSCOPE__FOLD(all_float64, double, int64_t, int64_t, 1, s & (a != 0), s & a, uint8_t, s)
OPSCOPE__FOLD(all_int32, int32_t, int64_t, int32_t, 1, s & (a != 0), s & a, uint8_t, s)
OPSCOPE__FOLD(all_int64, int64_t, int64_t, int64_t, 1, s & (a != 0), s & a, uint8_t, s)
OPSCOPE__FOLD(all_uint8, uint8_t, int64_t, uint8_t, 1, s & (a != 0), s & a, uint8_t, s)

static const struct opscope__reduction reductions[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = OPSCOPE__FOLDED(all_float32, 1, 1),
    [OPSCOPE_FLOAT64] = OPSCOPE__FOLDED(all_float64, 1, 1),
    [OPSCOPE_INT32] = OPSCOPE__FOLDED(all_int32, 1, 1),
    [OPSCOPE_INT64] = OPSCOPE__FOLDED(all_int64, 1, 1),
    [OPSCOPE_UINT8] = OPSCOPE__FOLDED(all_uint8, 1, 1),
    [OPSCOPE_BOOL] = OPSCOPE__FOLDED(all_uint8, 1, 1),
};

static const opscope_dtype outputs_as[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = OPSCOPE_BOOL, [OPSCOPE_FLOAT64] = OPSCOPE_BOOL, [OPSCOPE_INT32] = OPSCOPE_BOOL,
    [OPSCOPE_INT64] = OPSCOPE_BOOL,   [OPSCOPE_UINT8] = OPSCOPE_BOOL,   [OPSCOPE_BOOL] = OPSCOPE_BOOL,
};

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__reduce_arguments(call, reductions, outputs_as, arguments, NULL, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(all) = {
    .schema = "all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    .doc = "Whether every element is not zero over the dimensions in dim (all where it is absent or "
           "empty), as bools; true of none. NaN is not zero.",
    .samples = "b(3, 4)\n" "i(3, 4), [1], True\n" "t(3, 4), 0\n" "t(0, 3)",
    .forward = forward,
};
