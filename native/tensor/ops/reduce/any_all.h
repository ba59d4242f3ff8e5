/* tensor/ops/truths.h -- what all and any share: whether elements are not zero, joined by `&` or
 * `|`. */
#ifndef OPSCOPE_TENSOR_OPS_TRUTHS_H
#define OPSCOPE_TENSOR_OPS_TRUTHS_H

#include "tensor/ops/reduced.h"

/* The operator's forward. `of_none` is what no elements give. */
#define OPSCOPE__TRUTHS(name, join, of_none)                                                       \
    OPSCOPE__FOLD(name##_float32, float, int64_t, int32_t, of_none, s join(a != 0), s join a,      \
                  uint8_t, s)                                                                      \
    OPSCOPE__FOLD(name##_float64, double, int64_t, int64_t, of_none, s join(a != 0), s join a,     \
                  uint8_t, s)                                                                      \
    OPSCOPE__FOLD(name##_int32, int32_t, int64_t, int32_t, of_none, s join(a != 0), s join a,      \
                  uint8_t, s)                                                                      \
    OPSCOPE__FOLD(name##_int64, int64_t, int64_t, int64_t, of_none, s join(a != 0), s join a,      \
                  uint8_t, s)                                                                      \
    OPSCOPE__FOLD(name##_uint8, uint8_t, int64_t, uint8_t, of_none, s join(a != 0), s join a,      \
                  uint8_t, s)                                                                      \
    static int forward(struct opscope__call *call, const opscope_argument *arguments,              \
                       opscope_tensor **outputs)                                                   \
    {                                                                                              \
        static const struct opscope__reduction reductions[OPSCOPE_DTYPE_COUNT] =                   \
            OPSCOPE__FOLDS(name, of_none, of_none);                                                \
        static const opscope_dtype bools[OPSCOPE_DTYPE_COUNT] = {                                  \
            [OPSCOPE_FLOAT32] = OPSCOPE_BOOL, [OPSCOPE_FLOAT64] = OPSCOPE_BOOL,                    \
            [OPSCOPE_INT32] = OPSCOPE_BOOL,   [OPSCOPE_INT64] = OPSCOPE_BOOL,                      \
            [OPSCOPE_UINT8] = OPSCOPE_BOOL,   [OPSCOPE_BOOL] = OPSCOPE_BOOL};                      \
        return opscope__reduce_arguments(call, reductions, bools, arguments, NULL, outputs);       \
    }

#endif
