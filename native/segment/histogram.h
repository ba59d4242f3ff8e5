/* segment/histogram.h -- maps a duration to its bucket of the exponential histogram.
 *
 * Base 2^(1/8): eight buckets per octave (OpenTelemetry's scale 3, Prometheus's schema 3), so a
 * value differs from the geometric middle of its bucket by at most 4.5 %. Durations are integers in
 * units of 2^-40 s (0.9 ps): the octave is the position of the top bit; comparing the rest with
 * seven constants gives the bucket within it. The code uses integers only, so it changes no
 * floating-point flag of the observed program.
 */
#ifndef OPSCOPE_SEGMENT_HISTOGRAM_H
#define OPSCOPE_SEGMENT_HISTOGRAM_H

#include <stdint.h>

/* 2^63 * 2^(k/8), rounded down, for k = 1..7; the last bound exceeds every value. */
static const uint64_t opscope__bucket_bounds[9] = {
    0,
    0x8b95c1e3ea8bd6e6u,
    0x9837f0518db8a96fu,
    0xa5fed6a9b15138eau,
    0xb504f333f9de6484u,
    0xc5672a115506daddu,
    0xd744fccad69d6af4u,
    0xeac0c6e7dd24392eu,
    UINT64_MAX,
};

/* The last bound at or below the start of each sixteenth of the octave. No sixteenth contains two
 * bounds. */
static const uint8_t opscope__bucket_guess[16] = {0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 6, 7, 7};

/* `duration` in units of 2^-40 s. Octave o and bucket k cover [2^((8(o-40)+k)/8), the next) s. */
static inline void opscope__bucket_of(uint64_t duration, uint64_t *octave, uint64_t *bucket)
{
    const uint64_t value = duration | 1; /* sets the lowest bit, so that a top bit exists; one unit
                                            more does not change the bucket */
    const uint64_t top_bit = 63 ^ (uint64_t)__builtin_clzll(value);
    const uint64_t mantissa = value << (63 - top_bit);
    const uint64_t guess = opscope__bucket_guess[(mantissa >> 59) - 16];
    *octave = top_bit;
    *bucket = guess + (mantissa > opscope__bucket_bounds[guess + 1]);
}

#endif
