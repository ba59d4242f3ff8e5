/* tensor/ops/elementwise/rounding.h -- the operators ceil, floor, round and trunc, which differ in
 * their function of libm and leave integers unchanged. */
#ifndef OPSCOPE_TENSOR_OPS_ELEMENTWISE_ROUNDING_H
#define OPSCOPE_TENSOR_OPS_ELEMENTWISE_ROUNDING_H

#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

/* The whole operator; `what` it gives, for its documentation. */
#define OPSCOPE__ROUNDING(name, function, what)                                                    \
    OPSCOPE__UNARY(name##_float32, float, float, function##f(a))                                   \
    OPSCOPE__UNARY(name##_float64, double, double, function(a))                                    \
    OPSCOPE__UNARY_INTEGERS(name, a)                                                               \
    OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__NUMBER_LOOPS(name)}, .cost = 1)                      \
    const struct opscope__operator_spec OPSCOPE__OPERATOR(name) = {                                \
        .schema = #name "(Tensor self) -> Tensor",                                                 \
        .doc = what "; integers stay unchanged. Its gradient is zero.",                            \
        .samples = "t(3, 4) * 3\n"                                                                 \
                   "i(3)",                                                                         \
        .forward = forward,                                                                        \
        .elementwise = &elementwise,                                                               \
        .backward = opscope__zero_backward,                                                        \
        .has_inplace = true,                                                                       \
    };

#endif
