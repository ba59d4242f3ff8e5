/* tensor/ops/rounding.h -- what ceil, floor, round and trunc share: they leave integers as they
 * are. */
#ifndef OPSCOPE_TENSOR_OPS_ROUNDING_H
#define OPSCOPE_TENSOR_OPS_ROUNDING_H

#include "tensor/formula.h"
#include "tensor/ops/loops.h"

/* The operator's forward, by a function of libm. */
#define OPSCOPE__ROUNDING(name, function)                                                          \
    OPSCOPE__UNARY(name##_float32, float, float, function##f(a))                                   \
    OPSCOPE__UNARY(name##_float64, double, double, function(a))                                    \
    OPSCOPE__UNARY(name##_int32, int32_t, int32_t, a)                                              \
    OPSCOPE__UNARY(name##_int64, int64_t, int64_t, a)                                              \
    OPSCOPE__UNARY(name##_uint8, uint8_t, uint8_t, a)                                              \
    static int forward(struct opscope__call *call, const opscope_argument *arguments,              \
                       opscope_tensor **outputs)                                                   \
    {                                                                                              \
        static const struct opscope__elementwise spec = {.loops = {OPSCOPE__NUMBER_LOOPS(name)},   \
                                                         .cost = 1};                               \
        return opscope__elementwise(call, &spec, arguments, 1, NULL, 0, outputs);                  \
    }

#endif
