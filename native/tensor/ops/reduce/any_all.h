/* tensor/ops/reduce/any_all.h -- shared by all and any: tests elements for non-zero, and combines
 * the results with `&` or `|`. */
#ifndef OPSCOPE_TENSOR_OPS_REDUCE_ANY_ALL_H
#define OPSCOPE_TENSOR_OPS_REDUCE_ANY_ALL_H

#include "tensor/ops/reduce/reduction.h"

/* The operator's forward. `of_none` is the result for no elements. */
#define OPSCOPE__ANY_ALL(name, join, of_none)                                                      \
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
