/* tensor/ops/elementwise/rounding.h -- shared by ceil, floor, round and trunc, which leave integers
 * unchanged. */
#ifndef OPSCOPE_TENSOR_OPS_ELEMENTWISE_ROUNDING_H
#define OPSCOPE_TENSOR_OPS_ELEMENTWISE_ROUNDING_H

#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

/* The operator's forward, with a function of libm. */
#define OPSCOPE__ROUNDING(name, function)                                                          \
    OPSCOPE__UNARY(name##_float32, float, float, function##f(a))                                   \
    OPSCOPE__UNARY(name##_float64, double, double, function(a))                                    \
    OPSCOPE__UNARY_INTEGERS(name, a)                                                               \
    OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__NUMBER_LOOPS(name)}, .cost = 1)

#endif
