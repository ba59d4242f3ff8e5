/* tensor/ops/folds.h -- loops of reductions, as ops/loops.h has those of elementwise operators.
 *
 * An operator gives a step in `s` (the accumulator so far) and `a` (an element), how two accumulators
 * join, and how one becomes an element of the output. Over short stretches elements are folded into
 * accumulators as narrow as they are (`lane`), and only then into a wide one. With a `depth` of 4 an
 * element of a float32 sum has gone through at most 4 + 8 + 5 roundings to float32 when its stretch joins
 * a double, however long the sum; NumPy's pairwise sums have 16 + 3 and one for each doubling of 128.
 */
#ifndef OPSCOPE_TENSOR_OPS_FOLDS_H
#define OPSCOPE_TENSOR_OPS_FOLDS_H

#include "tensor/ops/loops.h"
#include "tensor/reduce.h"

enum { OPSCOPE__LANES = 32, OPSCOPE__STRETCH = 1024, OPSCOPE__ROWS_AT_ONCE = 8 };

/* In registers from the first halving to the last: a short row takes half the time. */
#if defined(__clang__)
#define OPSCOPE__HALVINGS
#else
#define OPSCOPE__HALVINGS _Pragma("GCC unroll 5")
#endif

/* Folds into `total` what `element`, an expression in `i`, gives for 0 to count. `depth` elements are folded
 * before they join a lane. */
#define OPSCOPE__FOLD_RUN(total, wide, lane, start_value, type, element, count, step, join_step,     \
                          depth)                                                                     \
    do {                                                                                             \
        int64_t done = 0;                                                                            \
        while ((count) - done >= OPSCOPE__LANES) {                                                   \
            lane lanes[OPSCOPE__LANES];                                                              \
            for (int j = 0; j < OPSCOPE__LANES; j++) {                                               \
                lanes[j] = (lane)(start_value);                                                      \
            }                                                                                        \
            const int64_t left = (count) - done;                                                     \
            const int64_t end = done + (left < OPSCOPE__STRETCH ? left : OPSCOPE__STRETCH);          \
            for (; (depth) > 1 && end - done >= (depth) * OPSCOPE__LANES;                            \
                 done += (depth) * OPSCOPE__LANES) {                                                 \
                for (int j = 0; j < OPSCOPE__LANES; j++) {                                           \
                    lane s = (lane)(start_value);                                                    \
                    for (int k = 0; k < (depth); k++) {                                              \
                        const int64_t i = done + j + k * OPSCOPE__LANES;                             \
                        const type a = (type)(element);                                              \
                        s = (lane)(step);                                                            \
                    }                                                                                \
                    const lane a = lanes[j];                                                         \
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

#define OPSCOPE__FOLD_ROW(name, type, wide, lane, start_value, step, join_step, depth)               \
    static void name##_row(void *accumulator, const char *data, int64_t stride, int64_t count)       \
    {                                                                                                \
        wide total = *(wide *)accumulator;                                                           \
        if (stride == sizeof(type)) {                                                                \
            const type *in = (const type *)(const void *)data;                                       \
            OPSCOPE__FOLD_RUN(total, wide, lane, start_value, type, in[i], count, step, join_step,   \
                              depth);                                                                \
        } else {                                                                                     \
            OPSCOPE__FOLD_RUN(total, wide, lane, start_value, type,                                  \
                              *(const type *)(const void *)(data + i * stride), count, step,         \
                              join_step, depth);                                                     \
        }                                                                                            \
        *(wide *)accumulator = total;                                                                \
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

#define OPSCOPE__FOLD_DEEP(name, type, wide, lane, start_value, step, join_step, out_type, result,   \
                           depth)                                                                    \
    OPSCOPE__FOLD_ROW(name, type, wide, lane, start_value, step, join_step, depth)                   \
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

#define OPSCOPE__FOLD(name, type, wide, lane, start_value, step, join_step, out_type, result)        \
    OPSCOPE__FOLD_DEEP(name, type, wide, lane, start_value, step, join_step, out_type, result, 1)
#define OPSCOPE__FOLD_SUM(name, type, wide, lane, out_type, result)                                  \
    OPSCOPE__FOLD_DEEP(name, type, wide, lane, 0, s + a, s + a, out_type, result, 4)

#define OPSCOPE__FOLDED(name, bits, price)                                                           \
    {                                                                                                \
        .row = name##_row, .columns = name##_columns, .join = name##_join, .finish = name##_finish,  \
        .start = (bits), .cost = (price)                                                             \
    }

#endif
