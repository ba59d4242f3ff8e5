/* tensor/ops/functions.h -- vector versions of the functions that a single operator each calls;
 * those of several are in loops.h. glibc has had them since 2.35. */
#ifndef OPSCOPE_TENSOR_OPS_FUNCTIONS_H
#define OPSCOPE_TENSOR_OPS_FUNCTIONS_H

#define OPSCOPE__CALLS_FUNCTIONS
#include "tensor/ops/loops.h"

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

#endif
