/* tensor/ops/elementwise/functions.h -- vector versions of functions that only one operator calls
 * each; loops.h has those of several operators. glibc has had them since 2.35. */
#ifndef OPSCOPE_TENSOR_OPS_ELEMENTWISE_FUNCTIONS_H
#define OPSCOPE_TENSOR_OPS_ELEMENTWISE_FUNCTIONS_H

#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

#ifdef OPSCOPE__VECTOR
#if __GLIBC_PREREQ(2, 35)
#define OPSCOPE__VECTOR_FUNCTION(name)                                                             \
    float name##f(float) OPSCOPE__VECTOR;                                                          \
    double name(double) OPSCOPE__VECTOR;
OPSCOPE__VECTOR_FUNCTION(acos)
OPSCOPE__VECTOR_FUNCTION(asin)
OPSCOPE__VECTOR_FUNCTION(atan)
OPSCOPE__VECTOR_FUNCTION(cosh)
OPSCOPE__VECTOR_FUNCTION(exp2)
OPSCOPE__VECTOR_FUNCTION(expm1)
OPSCOPE__VECTOR_FUNCTION(log10)
OPSCOPE__VECTOR_FUNCTION(log1p)
OPSCOPE__VECTOR_FUNCTION(log2)
OPSCOPE__VECTOR_FUNCTION(sinh)
OPSCOPE__VECTOR_FUNCTION(tan)
#endif
#endif

/* Loops and forward of an operator that is a function of the C library. `work` is the cost of an
 * element (struct opscope__elementwise). */
#define OPSCOPE__FLOAT_FUNCTION(name, work)                                                        \
    OPSCOPE__UNARY(name##_float32, float, float, name##f(a))                                       \
    OPSCOPE__UNARY(name##_float64, double, double, name(a))                                        \
    OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__FLOAT_LOOPS(name)}, .cost = work,                    \
                     .needs_floats = true)

/* The backward of a function of one tensor. The results are tensors of the formula `f`: the
 * derivative (opscope__formula_chain), or what the gradient is divided by. They are computed from
 * the input or from the output, `known`, which the operator saves. */
#define OPSCOPE__SLOPE(known, slope)                                                               \
    static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)      \
    {                                                                                              \
        struct opscope__formula f = {0};                                                           \
        return opscope__formula_chain(&f, backward, slope(&f, backward->known[0]), gradients);     \
    }
#define OPSCOPE__DIVISOR(known, divisor)                                                           \
    static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)      \
    {                                                                                              \
        struct opscope__formula f = {0};                                                           \
        opscope_tensor *below = divisor(&f, backward->known[0]);                                   \
        gradients[0] = opscope__keep(opscope__f2(&f, "div", backward->gradients[0], below));       \
        return opscope__formula_end(&f, gradients, backward->input_count);                         \
    }

/* What the specifications of all of them have. */
#define OPSCOPE__FUNCTION_SPEC                                                                     \
    .forward = forward, .elementwise = &elementwise, .backward = backward, .has_inplace = true

#endif
