/* tensor/ops/elementwise/exponential.h -- the exponential function of float32, which the compiler
 * vectorises: expf of libmvec takes half as long again on AVX-512.
 *
 * exp(x) is 2^n exp(r) with n the integer nearest to x / log(2), so that |r| is at most log(2) / 2.
 * exp(r) is a polynomial. The error is at most 1.15 units in the last place. The last bit depends
 * on whether the CPU multiplies and adds in one instruction, and on nothing else.
 */
#ifndef OPSCOPE_TENSOR_OPS_ELEMENTWISE_EXPONENTIAL_H
#define OPSCOPE_TENSOR_OPS_ELEMENTWISE_EXPONENTIAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tensor/ops/elementwise/multiply_add.h"

/* The largest |x| for which opscope__exp_normal is defined: exp(x) and 1 / exp(x) are then neither
 * subnormal nor infinite. */
#define OPSCOPE__EXP_NORMAL 87.0f

static inline uint32_t opscope__float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float opscope__float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x + this is x as an integer, in the last bits, and the exponent of 2^x. */
#define OPSCOPE__EXP_ROUNDER (0x1.8p23f + 127)

/* exp(x) / 2^n, and n, as the bits of n + OPSCOPE__EXP_ROUNDER. */
static inline float opscope__exp_fraction(float x, uint32_t *rounded_bits)
{
    /* log(2) in two parts. A product with n has no rounding error with the first, of 9 bits. */
    static const float high = 0.693359375f, low = -0.000212194442f, log2_e = 1.44269502f;
    /* The polynomial 1 + r + r^2 (c2 + c3 r + ...) with the smallest relative error, 3.1e-9 before
     * any rounding: Remez's algorithm, over |r| up to log(2) / 2. */
    static const float c2 = 0.49999994f, c3 = 0.166665211f, c4 = 0.041668389f, c5 = 0.00836871006f,
                       c6 = 0.00138146093f;
    float rounded = opscope__multiply_add(x, log2_e, OPSCOPE__EXP_ROUNDER);
    float n = rounded - OPSCOPE__EXP_ROUNDER;
    float r = opscope__multiply_add(n, -low, opscope__multiply_add(n, -high, x));
    float tail = opscope__multiply_add(r, c6, c5);
    tail = opscope__multiply_add(r, tail, c4);
    tail = opscope__multiply_add(r, tail, c3);
    tail = opscope__multiply_add(r, tail, c2);
    *rounded_bits = opscope__float_bits(rounded);
    tail = opscope__multiply_add(r, tail, 1);
    return opscope__multiply_add(r, tail, 1);
}

/* exp(x) for |x| up to OPSCOPE__EXP_NORMAL, and NaN for NaN. */
static inline float opscope__exp_normal(float x)
{
    uint32_t n;
    float fraction = opscope__exp_fraction(x, &n);
    return fraction * opscope__float_of(n << 23);
}

/* exp(x) for any x, with the same bits. Multiplies by 2^n in two steps, the second of which rounds
 * subnormal results, and gives 0 and infinity outside of -104 to 89. */
static inline float opscope__exp_any(float x)
{
    uint32_t n;
    x = x < -104 ? -104 : x;
    x = x > 89 ? 89 : x;
    float fraction = opscope__exp_fraction(x, &n);
    int32_t whole = (int32_t)(n - opscope__float_bits(OPSCOPE__EXP_ROUNDER));
    int32_t half = whole >> 1;
    float first = opscope__float_of((uint32_t)(half + 127) << 23);
    float second = opscope__float_of((uint32_t)(whole - half + 127) << 23);
    return fraction * first * second;
}

#endif
