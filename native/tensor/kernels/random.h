/* tensor/kernels/random.h -- numbers for random operators: one sequence for the process, a range of
 * it for each call.
 *
 * splitmix64 (Steele, Lea and Flood 2014) is a counter followed by a mixer. One addition therefore
 * takes a range, and the numbers of a call depend only on the seed and on earlier calls.
 */
#ifndef OPSCOPE_TENSOR_KERNELS_RANDOM_H
#define OPSCOPE_TENSOR_KERNELS_RANDOM_H

#include <math.h>
#include <stdint.h>

#include "opscope/export.h"

typedef struct opscope__stretch {
    uint64_t counter;
} opscope__stretch;

/* Takes a range for `count` numbers, two draws each. */
opscope__stretch opscope__stretch_take(uint64_t count);

/* The state of the process's sequence: all numbers to come follow from it. Never 0. */
OPSCOPE_API uint64_t opscope__random_state(void);
OPSCOPE_API void opscope__random_set_state(uint64_t state);

/* The state of a sequence that begins with this seed. */
OPSCOPE_API uint64_t opscope__random_begin(uint64_t seed);

/* From here on, this thread's operators take their numbers from a sequence of its own; the end
 * returns its state. They do not nest. */
OPSCOPE_API void opscope__random_use_own(uint64_t state);
OPSCOPE_API uint64_t opscope__random_end_own(void);

static inline uint64_t opscope__draw_bits(opscope__stretch *stretch)
{
    uint64_t z = stretch->counter += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static inline double opscope__draw_unit(opscope__stretch *stretch)
{
    return (double)(opscope__draw_bits(stretch) >> 11) * 0x1p-53;
}

static inline double opscope__draw_normal(opscope__stretch *stretch)
{
    double radius = sqrt(-2 * log(1 - opscope__draw_unit(stretch)));
    return radius * cos(6.283185307179586 * opscope__draw_unit(stretch));
}

#endif
