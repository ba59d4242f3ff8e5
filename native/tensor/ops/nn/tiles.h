/* tensor/ops/nn/tiles.h -- the innermost loops of convolutions for both dtypes, and the sizes of
 * their tiles at this level of CPU.
 *
 * Sources that include it are compiled with contraction (tensor.cmake): a product and its addition
 * are one instruction where the CPU has it.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_TILES_H
#define OPSCOPE_TENSOR_OPS_NN_TILES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define OPSCOPE__VECTOR_BYTES 64
#define OPSCOPE__FLOATS 16
#define OPSCOPE__HALF_FLOATS 8
#define OPSCOPE__DOUBLES 8
#define OPSCOPE__HALF_DOUBLES 4
#elif defined(__AVX__)
#define OPSCOPE__VECTOR_BYTES 32
#define OPSCOPE__FLOATS 8
#define OPSCOPE__HALF_FLOATS 4
#define OPSCOPE__DOUBLES 4
#define OPSCOPE__HALF_DOUBLES 2
#else
#define OPSCOPE__VECTOR_BYTES 16
#define OPSCOPE__FLOATS 4
#define OPSCOPE__HALF_FLOATS 2
#define OPSCOPE__DOUBLES 2
#define OPSCOPE__HALF_DOUBLES 1
#endif

#if defined(__AVX512F__) || defined(__aarch64__) /* 32 registers, else 16 */
enum {
    OPSCOPE__TILE_KERNELS = 8,
    OPSCOPE__TILE_VECTORS = 3,
    OPSCOPE__SUM_ROWS = 8,
    OPSCOPE__SUM_VECTORS = 3,
};
#else
enum {
    OPSCOPE__TILE_KERNELS = 4,
    OPSCOPE__TILE_VECTORS = 3,
    OPSCOPE__SUM_ROWS = 6,
    OPSCOPE__SUM_VECTORS = 2,
};
#endif

enum {
    OPSCOPE__WIDE_VECTORS = 8, /* of a tile of one kernel */
    OPSCOPE__NARROW_ROWS = 9,  /* sums of one kernel at once: all of one of 3 x 3 */
};

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define OPSCOPE__HAS_SHUFFLES
#endif
#endif

/* The first, and the last, halves of two vectors, alternately. */
#define OPSCOPE__ZIP_LOW(lanes, a, b) OPSCOPE__ZIP(lanes, LOW, a, b)
#define OPSCOPE__ZIP_HIGH(lanes, a, b) OPSCOPE__ZIP(lanes, HIGH, a, b)
#define OPSCOPE__ZIP(lanes, half, a, b) OPSCOPE__ZIP_NAMED(lanes, half, a, b)
#define OPSCOPE__ZIP_NAMED(lanes, half, a, b)                                                      \
    __builtin_shufflevector(a, b, OPSCOPE__ZIP_##half##_##lanes)
#define OPSCOPE__ZIP_LOW_4 0, 4, 1, 5
#define OPSCOPE__ZIP_HIGH_4 2, 6, 3, 7
#define OPSCOPE__ZIP_LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define OPSCOPE__ZIP_HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define OPSCOPE__ZIP_LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define OPSCOPE__ZIP_HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

/* Every second element of a vector, then of another, which begins with the last element of the
 * first. */
#define OPSCOPE__EVERY_SECOND(lanes, a, b) OPSCOPE__EVERY_SECOND_NAMED(lanes, a, b)
#define OPSCOPE__EVERY_SECOND_NAMED(lanes, a, b)                                                   \
    __builtin_shufflevector(a, b, OPSCOPE__SECOND_##lanes)
#define OPSCOPE__SECOND_2 0, 3
#define OPSCOPE__SECOND_4 0, 2, 5, 7
#define OPSCOPE__SECOND_8 0, 2, 4, 6, 9, 11, 13, 15
#define OPSCOPE__SECOND_16 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31

/* The elements of two vectors whose number is even, or odd. */
#define OPSCOPE__EVENS(lanes, a, b) OPSCOPE__EVENS_NAMED(lanes, a, b)
#define OPSCOPE__EVENS_NAMED(lanes, a, b) __builtin_shufflevector(a, b, OPSCOPE__EVEN_##lanes)
#define OPSCOPE__ODDS(lanes, a, b) OPSCOPE__ODDS_NAMED(lanes, a, b)
#define OPSCOPE__ODDS_NAMED(lanes, a, b) __builtin_shufflevector(a, b, OPSCOPE__ODD_##lanes)
#define OPSCOPE__EVEN_4 0, 2, 4, 6
#define OPSCOPE__ODD_4 1, 3, 5, 7
#define OPSCOPE__EVEN_8 OPSCOPE__EVEN_4, 8, 10, 12, 14
#define OPSCOPE__ODD_8 OPSCOPE__ODD_4, 9, 11, 13, 15
#define OPSCOPE__EVEN_16 OPSCOPE__EVEN_8, 16, 18, 20, 22, 24, 26, 28, 30
#define OPSCOPE__ODD_16 OPSCOPE__ODD_8, 17, 19, 21, 23, 25, 27, 29, 31

/* Keeps a compiler from making a call, or vectors, of a loop of a few turns. */
#define OPSCOPE__KEEP_LOOP() __asm__ volatile("")

/* The number of kernels of a tile, if so many are left. */
static inline int opscope__kernels_of(int64_t left)
{
    return left > 4 ? OPSCOPE__TILE_KERNELS : left > 2 ? 4 : (int)left;
}

#define REAL float
#define LANES OPSCOPE__FLOATS
#define HALF OPSCOPE__HALF_FLOATS
#define NAMED(name) opscope__##name##_float32
#include "tensor/ops/nn/copy_lines.h"
#include "tensor/ops/nn/convolution_tiles.h"
#undef REAL
#undef LANES
#undef HALF
#undef NAMED

#define REAL double
#define LANES OPSCOPE__DOUBLES
#define HALF OPSCOPE__HALF_DOUBLES
#define NAMED(name) opscope__##name##_float64
#include "tensor/ops/nn/copy_lines.h"
#include "tensor/ops/nn/convolution_tiles.h"
#undef REAL
#undef LANES
#undef HALF
#undef NAMED

#endif
