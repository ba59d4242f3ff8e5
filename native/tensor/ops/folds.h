/* tensor/ops/folds.h -- loops of reductions, as ops/loops.h has those of elementwise operators.
 *
 * An operator gives a step in `s` (the accumulator so far) and `a` (an element), and how an
 * accumulator becomes an element of the output. Rows are folded in LANES at once.
 */
#ifndef OPSCOPE_TENSOR_OPS_FOLDS_H
#define OPSCOPE_TENSOR_OPS_FOLDS_H

#include "tensor/ops/loops.h"
#include "tensor/reduce.h"

enum { OPSCOPE__LANES = 32 };

#define OPSCOPE__FOLD(name, type, wide, lane, start_value, step, join_step, out_type, result)        \
    static void name##_row(void *accumulator, const char *data, int64_t stride, int64_t count)       \
    {                                                                                                \
        wide total = *(wide *)accumulator;                                                           \
        int64_t i = 0;                                                                               \
        if (stride == sizeof(type)) {                                                                \
            const type *in = (const type *)(const void *)data;                                       \
            while (count - i >= OPSCOPE__LANES) {                                                    \
                lane lanes[OPSCOPE__LANES];                                                          \
                for (int j = 0; j < OPSCOPE__LANES; j++) {                                           \
                    lanes[j] = (lane)(start_value);                                                  \
                }                                                                                    \
                /* Lanes as narrow as elements stay exact enough over a short stretch. */            \
                int64_t end = count - i < 64 * OPSCOPE__LANES ? count : i + 64 * OPSCOPE__LANES;     \
                for (; end - i >= OPSCOPE__LANES; i += OPSCOPE__LANES) {                             \
                    for (int j = 0; j < OPSCOPE__LANES; j++) {                                       \
                        const lane s = lanes[j];                                                     \
                        const type a = in[i + j];                                                    \
                        lanes[j] = (lane)(step);                                                     \
                    }                                                                                \
                }                                                                                    \
                for (int j = 0; j < OPSCOPE__LANES; j++) {                                           \
                    const wide s = total;                                                            \
                    const lane a = lanes[j];                                                         \
                    total = (wide)(join_step);                                                       \
                }                                                                                    \
            }                                                                                        \
        }                                                                                            \
        for (; i < count; i++) {                                                                     \
            const wide s = total;                                                                    \
            const type a = *(const type *)(const void *)(data + i * stride);                         \
            total = (wide)(step);                                                                    \
        }                                                                                            \
        *(wide *)accumulator = total;                                                                \
    }                                                                                                \
    static void name##_column(void *accumulators, const char *data, int64_t stride, int64_t count)   \
    {                                                                                                \
        wide *into = accumulators;                                                                   \
        if (stride == sizeof(type)) {                                                                \
            const type *in = (const type *)(const void *)data;                                       \
            OPSCOPE__INDEPENDENT                                                                     \
            for (int64_t i = 0; i < count; i++) {                                                    \
                const wide s = into[i];                                                              \
                const type a = in[i];                                                                \
                into[i] = (wide)(step);                                                              \
            }                                                                                        \
            return;                                                                                  \
        }                                                                                            \
        for (int64_t i = 0; i < count; i++) {                                                        \
            const wide s = into[i];                                                                  \
            const type a = *(const type *)(const void *)(data + i * stride);                         \
            into[i] = (wide)(step);                                                                  \
        }                                                                                            \
    }                                                                                                \
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

#define OPSCOPE__FOLDED(name, bits, price)                                                           \
    {                                                                                                \
        .row = name##_row, .column = name##_column, .join = name##_join, .finish = name##_finish,    \
        .start = (bits), .cost = (price)                                                             \
    }

#endif
