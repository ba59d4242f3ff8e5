/* tensor/ops/elementwise/multiply_add.h -- a product and a sum, in one instruction where the CPU
 * level has one. */
#ifndef OPSCOPE_TENSOR_OPS_ELEMENTWISE_MULTIPLY_ADD_H
#define OPSCOPE_TENSOR_OPS_ELEMENTWISE_MULTIPLY_ADD_H

static inline float opscope__multiply_add(float a, float b, float c)
{
#ifdef __FP_FAST_FMAF
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

#endif
