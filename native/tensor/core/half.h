/* tensor/core/half.h -- conversion of bfloat16 and float16 bits from and to float. Rounds to
 * nearest, ties to even. */
#ifndef OPSCOPE_TENSOR_CORE_HALF_H
#define OPSCOPE_TENSOR_CORE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t opscope__float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float opscope__bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float opscope__from_bfloat16(uint16_t half)
{
    return opscope__bits_float((uint32_t)half << 16);
}

static inline uint16_t opscope__to_bfloat16(float value)
{
    uint32_t bits = opscope__float_bits(value);
    if (value != value) {
        return 0x7FC0;
    }
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static inline float opscope__from_float16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t rest = (uint32_t)(half & 0x7FFF) << 13;
    if ((half & 0x7C00) == 0x7C00) {
        return opscope__bits_float(sign | rest | 0x7F800000);
    }
    /* Scaling by 2^112 corrects the exponent, also of subnormals. */
    return opscope__bits_float(sign | opscope__float_bits(opscope__bits_float(rest) * 0x1p112f));
}

static inline uint16_t opscope__to_float16(float value)
{
    uint32_t bits = opscope__float_bits(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7FFFFFFF;
    if (bits >= 0x47800000) {
        return (uint16_t)(sign | (bits > 0x7F800000 ? 0x7E00 : 0x7C00));
    }
    if (bits < 0x38800000) {
        /* Subnormal: adding one half makes the processor round at the right bit. */
        return (uint16_t)(sign |
                          (opscope__float_bits(opscope__bits_float(bits) + 0.5f) - 0x3F000000));
    }
    return (uint16_t)(sign | ((bits - 0x38000000 + 0xFFF + (bits >> 13 & 1)) >> 13));
}

#endif
