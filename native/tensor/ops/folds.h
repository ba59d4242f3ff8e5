/* tensor/ops/folds.h -- loops of reductions, as ops/loops.h has those of elementwise operators.
 *
 * An operator gives a step in `s` (the accumulator so far) and `a` (an element), how two accumulators
 * join, and how one becomes an element of the output. Over short stretches elements are folded into
 * accumulators as narrow as they are (`lane`), and only then into a wide one. An element of a float32 sum
 * has gone through at most 8 + 1 + 4 + 5 roundings to float32 when its stretch joins a double, however
 * long the sum; NumPy's pairwise sums have 16 + 3 and one for each doubling of 128. Memory is read in its
 * order: a long sum that reads a few lines ahead and comes back takes a tenth longer.
 */
#ifndef OPSCOPE_TENSOR_OPS_FOLDS_H
#define OPSCOPE_TENSOR_OPS_FOLDS_H

#include "tensor/ops/loops.h"
#include "tensor/reduce.h"

enum {
    OPSCOPE__LANE_BYTES = 256, /* eight vectors: taken in turn they hide how long an addition takes */
    OPSCOPE__LANES = 32,       /* that they join into, at the end of a block */
    OPSCOPE__BLOCK = 512,
    OPSCOPE__STRETCH = 2048,   /* blocks that join into a wide accumulator */
    OPSCOPE__ROWS_AT_ONCE = 8
};

#define OPSCOPE__MANY(lane) ((int)(OPSCOPE__LANE_BYTES / sizeof(lane)))

/* In registers from the first halving to the last: a short row takes half the time. */
#if defined(__clang__)
#define OPSCOPE__HALVINGS
#else
#define OPSCOPE__HALVINGS _Pragma("GCC unroll 5")
#endif

/* Folds into `total` what `element`, an expression in `i`, gives for 0 to count. */
#define OPSCOPE__FOLD_RUN(total, wide, lane, start_value, type, element, count, step, join_step)     \
    do {                                                                                             \
        int64_t done = 0;                                                                            \
        while ((count) - done >= OPSCOPE__LANES) {                                                   \
            const int64_t left = (count) - done;                                                     \
            const int64_t end = done + (left < OPSCOPE__STRETCH ? left : OPSCOPE__STRETCH);          \
            lane lanes[OPSCOPE__LANES];                                                              \
            for (int j = 0; j < OPSCOPE__LANES; j++) {                                               \
                lanes[j] = (lane)(start_value);                                                      \
            }                                                                                        \
            while (end - done >= OPSCOPE__MANY(lane)) {                                              \
                const int64_t block_end = end - done < OPSCOPE__BLOCK ? end : done + OPSCOPE__BLOCK; \
                lane many[OPSCOPE__MANY(lane)];                                                      \
                for (int j = 0; j < OPSCOPE__MANY(lane); j++) {                                      \
                    many[j] = (lane)(start_value);                                                   \
                }                                                                                    \
                for (; block_end - done >= OPSCOPE__MANY(lane); done += OPSCOPE__MANY(lane)) {       \
                    for (int j = 0; j < OPSCOPE__MANY(lane); j++) {                                  \
                        const int64_t i = done + j;                                                  \
                        const lane s = many[j];                                                      \
                        const type a = (type)(element);                                              \
                        many[j] = (lane)(step);                                                      \
                    }                                                                                \
                }                                                                                    \
                OPSCOPE__HALVINGS                                                                    \
                for (int half = OPSCOPE__MANY(lane) / 2; half >= OPSCOPE__LANES; half /= 2) {        \
                    for (int j = 0; j < half; j++) {                                                 \
                        const lane s = many[j], a = many[j + half];                                  \
                        many[j] = (lane)(join_step);                                                 \
                    }                                                                                \
                }                                                                                    \
                for (int j = 0; j < OPSCOPE__LANES; j++) {                                           \
                    const lane s = lanes[j], a = many[j];                                            \
                    lanes[j] = (lane)(join_step);                                                    \
                }                                                                                    \
            }                                                                                        \
            for (; end - done >= OPSCOPE__LANES; done += OPSCOPE__LANES) {                           \
                for (int j = 0; j < OPSCOPE__LANES; j++) {                                           \
                    const int64_t i = done + j;                                                      \
                    const lane s = lanes[j];                                                         \
                    const type a = (type)(element);                                                  \
                    lanes[j] = (lane)(step);                                                         \
                }                                                                                    \
            }                                                                                        \
            OPSCOPE__HALVINGS                                                                        \
            for (int half = OPSCOPE__LANES / 2; half > 0; half /= 2) {                               \
                for (int j = 0; j < half; j++) {                                                     \
                    const lane s = lanes[j], a = lanes[j + half];                                    \
                    lanes[j] = (lane)(join_step);                                                    \
                }                                                                                    \
            }                                                                                        \
            const wide s = (total);                                                                  \
            const lane a = lanes[0];                                                                 \
            (total) = (wide)(join_step);                                                             \
        }                                                                                            \
        for (int64_t i = done; i < (count); i++) {                                                   \
            const wide s = (total);                                                                  \
            const type a = (type)(element);                                                          \
            (total) = (wide)(step);                                                                  \
        }                                                                                            \
    } while (0)

#define OPSCOPE__FOLD_ROWS(name, type, wide, lane, start_value, step, join_step)                     \
    OPSCOPE__WIDTH static void name##_rows(void *accumulators, const char *data, int64_t stride,     \
                                           int64_t count, int64_t next, int64_t length)              \
    {                                                                                                \
        wide *into = accumulators;                                                                   \
        for (; count > 0; count--, into++, data += stride) {                                         \
            wide total = *into;                                                                      \
            if (next == sizeof(type)) {                                                              \
                const type *in = (const type *)(const void *)data;                                   \
                OPSCOPE__FOLD_RUN(total, wide, lane, start_value, type, in[i], length, step,         \
                                  join_step);                                                        \
            } else {                                                                                 \
                OPSCOPE__FOLD_RUN(total, wide, lane, start_value, type,                              \
                                  *(const type *)(const void *)(data + i * next), length, step,      \
                                  join_step);                                                        \
            }                                                                                        \
            *into = total;                                                                           \
        }                                                                                            \
    }

/* Accumulators are read and written once for ROWS_AT_ONCE elements. */
#define OPSCOPE__FOLD_COLUMNS(name, type, wide, lane, start_value, step, join_step)                  \
    static void name##_columns(void *accumulators, const char *data, int64_t stride, int64_t count,  \
                               int64_t next, int64_t rows)                                           \
    {                                                                                                \
        wide *into = accumulators;                                                                   \
        for (int64_t some; rows > 0; rows -= some, data += some * next) {                            \
            some = rows < OPSCOPE__ROWS_AT_ONCE ? 1 : OPSCOPE__ROWS_AT_ONCE;                         \
            if (stride != sizeof(type)) {                                                            \
                some = rows < OPSCOPE__ROWS_AT_ONCE ? rows : OPSCOPE__ROWS_AT_ONCE;                  \
                for (int64_t i = 0; i < count; i++) {                                                \
                    wide s = into[i];                                                                \
                    for (int64_t j = 0; j < some; j++) {                                             \
                        const type a = *(const type *)(const void *)(data + i * stride + j * next);  \
                        s = (wide)(step);                                                            \
                    }                                                                                \
                    into[i] = s;                                                                     \
                }                                                                                    \
            } else if (some == 1) {                                                                  \
                const type *in = (const type *)(const void *)data;                                   \
                OPSCOPE__INDEPENDENT                                                                 \
                for (int64_t i = 0; i < count; i++) {                                                \
                    const wide s = into[i];                                                          \
                    const type a = in[i];                                                            \
                    into[i] = (wide)(step);                                                          \
                }                                                                                    \
            } else {                                                                                 \
                OPSCOPE__INDEPENDENT                                                                 \
                for (int64_t i = 0; i < count; i++) {                                                \
                    lane joined = (lane)(start_value);                                               \
                    for (int j = 0; j < OPSCOPE__ROWS_AT_ONCE; j++) {                                \
                        const lane s = joined;                                                       \
                        const type a = ((const type *)(const void *)(data + j * next))[i];           \
                        joined = (lane)(step);                                                       \
                    }                                                                                \
                    const wide s = into[i];                                                          \
                    const lane a = joined;                                                           \
                    into[i] = (wide)(join_step);                                                     \
                }                                                                                    \
            }                                                                                        \
        }                                                                                            \
    }

#define OPSCOPE__FOLD(name, type, wide, lane, start_value, step, join_step, out_type, result)        \
    OPSCOPE__FOLD_ROWS(name, type, wide, lane, start_value, step, join_step)                         \
    OPSCOPE__FOLD_COLUMNS(name, type, wide, lane, start_value, step, join_step)                      \
    static void name##_join(void *accumulators, const void *more, int64_t count)                     \
    {                                                                                                \
        for (int64_t i = 0; i < count; i++) {                                                        \
            const wide s = ((wide *)accumulators)[i], a = ((const wide *)more)[i];                   \
            ((wide *)accumulators)[i] = (wide)(join_step);                                           \
        }                                                                                            \
    }                                                                                                \
    static void name##_finish(char *out, int64_t stride, const void *accumulators, int64_t count,    \
                              int64_t folded)                                                        \
    {                                                                                                \
        (void)folded;                                                                                \
        for (int64_t i = 0; i < count; i++) {                                                        \
            const wide s = ((const wide *)accumulators)[i];                                          \
            *(out_type *)(void *)(out + i * stride) = (out_type)(result);                            \
        }                                                                                            \
    }

#define OPSCOPE__FOLD_SUM(name, type, wide, lane, out_type, result)                                  \
    OPSCOPE__FOLD(name, type, wide, lane, 0, s + a, s + a, out_type, result)

#define OPSCOPE__FOLDED(name, bits, price)                                                           \
    {                                                                                                \
        .rows = name##_rows, .columns = name##_columns, .join = name##_join, .finish = name##_finish,\
        .start = (bits), .cost = (price)                                                             \
    }

#endif
