/* tensor/ops/reduce/reduce_loops.h -- loops of reductions, like ops/elementwise/loops.h for
 * elementwise operators.
 *
 * An operator gives a step in `s` (the accumulator so far) and `a` (an element), an expression that
 * joins two accumulators, and one that turns an accumulator into an element of the output. Over
 * short stretches, elements are folded into accumulators of their own width (vector lanes, of type
 * `lane`), which are then joined into wide ones. Before its stretch is joined in double, an element
 * of a float32 sum goes through at most 8 + 4 roundings to float32, however long the sum is; in
 * NumPy's pairwise sums it goes through 16 + 3, and one more for each doubling of 128.
 */
#ifndef OPSCOPE_TENSOR_OPS_REDUCE_REDUCE_LOOPS_H
#define OPSCOPE_TENSOR_OPS_REDUCE_REDUCE_LOOPS_H

#include "tensor/kernels/reduce.h"
#include "tensor/ops/elementwise/loops.h"

/* Rows are summed in vectors of 256 bits, which no processor splits: memory is the limit. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define OPSCOPE__WIDTH __attribute__((target("prefer-vector-width=256")))
#else
#define OPSCOPE__WIDTH
#endif

enum {
    OPSCOPE__LANE_BYTES =
        256,                /* eight vectors: using them in turn hides the latency of an addition */
    OPSCOPE__LANES = 32,    /* they are joined into these, for the rest of a row */
    OPSCOPE__STRETCH = 512, /* elements that are joined into wide accumulators, */
    OPSCOPE__TOTALS = 4,    /* of which there are several, to hide their latency */
    OPSCOPE__IN_HALVES = 16 * OPSCOPE__STRETCH, /* elements of a row that is read in two halves */
    OPSCOPE__CACHE_LINE = 64,
    OPSCOPE__ROWS_AT_ONCE = 8
};

#define OPSCOPE__MANY(lane) ((int)(OPSCOPE__LANE_BYTES / sizeof(lane)))

/* Keeps the lanes in registers from the first halving to the last: a short row takes half the
 * time. */
#if defined(__clang__)
#define OPSCOPE__HALVINGS
#else
#define OPSCOPE__HALVINGS _Pragma("GCC unroll 6")
#endif

/* Long rows have two halves, whose stretches are read in turns: while one is folded, the next one
 * of the other half is prefetched. A processor reads ahead where it sees a stream, and two streams
 * bring more: a sum of 16 MB takes a quarter to a third less time on Zen 3. */
static inline int64_t opscope__half_of(int64_t length)
{
    return length >= OPSCOPE__IN_HALVES ? length / (2 * OPSCOPE__STRETCH) * OPSCOPE__STRETCH : 0;
}

/* Where the stretch is that comes after `done` elements. What is left after the halves follows. */
static inline int64_t opscope__stretch_at(int64_t done, int64_t half)
{
    int64_t number = done / OPSCOPE__STRETCH;
    return done < 2 * half ? number / 2 * OPSCOPE__STRETCH + number % 2 * half : done;
}

/* Where the elements to prefetch with the first of that stretch are. In a row without halves they
 * are a step ahead: on Zen 4 a sum of 16 MB takes 5 to 10 % less time; from 640 bytes on it is a
 * fifth slower than no prefetch. */
static inline int64_t opscope__ahead_of(int64_t done, int64_t half, int64_t step)
{
    return half > 0 ? opscope__stretch_at(done + OPSCOPE__STRETCH, half) : done + step;
}

/* Prefetches the cache lines of a step. */
#define OPSCOPE__FETCH(in, lane)                                                                   \
    do {                                                                                           \
        const char *line = (const char *)(in), *end = line + OPSCOPE__MANY(lane) * sizeof *(in);   \
        for (; line < end; line += OPSCOPE__CACHE_LINE) {                                          \
            __builtin_prefetch(line);                                                              \
        }                                                                                          \
    } while (0)

#define OPSCOPE__START(lanes, many, lane, start_value)                                             \
    lane lanes[many];                                                                              \
    for (int j = 0; j < (many); j++) {                                                             \
        lanes[j] = (lane)(start_value);                                                            \
    }

/* Takes one step in each of the first `many` lanes, with the elements from `done` on, and advances
 * `done`. */
#define OPSCOPE__STEP(lanes, many, lane, type, element, step)                                      \
    for (int j = 0; j < (many); j++) {                                                             \
        const int64_t i = done + j;                                                                \
        const lane s = lanes[j];                                                                   \
        const type a = (type)(element);                                                            \
        lanes[j] = (lane)(step);                                                                   \
    }                                                                                              \
    done += (many);

/* Joins the second half of `many` accumulators into the first, until there are `few`. */
#define OPSCOPE__HALVE(lanes, many, few, lane, join_step)                                          \
    OPSCOPE__HALVINGS                                                                              \
    for (int half = (many) / 2; half >= (few); half /= 2) {                                        \
        for (int j = 0; j < half; j++) {                                                           \
            const lane s = lanes[j], a = lanes[j + half];                                          \
            lanes[j] = (lane)(join_step);                                                          \
        }                                                                                          \
    }

/* Joins the remaining lanes into the totals. */
#define OPSCOPE__JOIN_TOTALS(totals, wide, lanes, lane, join_step)                                 \
    for (int j = 0; j < OPSCOPE__TOTALS; j++) {                                                    \
        const wide s = totals[j];                                                                  \
        const lane a = lanes[j];                                                                   \
        totals[j] = (wide)(join_step);                                                             \
    }

/* Folds into `total` the values of `element`, an expression in `i`, for 0 to count. Each stretch
 * from `done` on, and the rest after the last one, begins with `enter`; each step of a stretch with
 * `ahead`. */
#define OPSCOPE__FOLD_BY(enter, ahead, total, wide, lane, start_value, type, element, count, step, \
                         join_step)                                                                \
    do {                                                                                           \
        int64_t done = 0;                                                                          \
        OPSCOPE__START(totals, OPSCOPE__TOTALS, wide, start_value)                                 \
        while ((count) - done >= OPSCOPE__STRETCH) {                                               \
            enter;                                                                                 \
            OPSCOPE__START(lanes, OPSCOPE__MANY(lane), lane, start_value)                          \
            for (int turn = OPSCOPE__STRETCH / OPSCOPE__MANY(lane); turn > 0; turn--) {            \
                ahead;                                                                             \
                OPSCOPE__STEP(lanes, OPSCOPE__MANY(lane), lane, type, element, step)               \
            }                                                                                      \
            OPSCOPE__HALVE(lanes, OPSCOPE__MANY(lane), OPSCOPE__TOTALS, lane, join_step)           \
            OPSCOPE__JOIN_TOTALS(totals, wide, lanes, lane, join_step)                             \
        }                                                                                          \
        enter;                                                                                     \
        if ((count) - done >= OPSCOPE__LANES) {                                                    \
            OPSCOPE__START(lanes, OPSCOPE__MANY(lane), lane, start_value)                          \
            while ((count) - done >= OPSCOPE__MANY(lane)) {                                        \
                OPSCOPE__STEP(lanes, OPSCOPE__MANY(lane), lane, type, element, step)               \
            }                                                                                      \
            OPSCOPE__HALVE(lanes, OPSCOPE__MANY(lane), OPSCOPE__LANES, lane, join_step)            \
            while ((count) - done >= OPSCOPE__LANES) {                                             \
                OPSCOPE__STEP(lanes, OPSCOPE__LANES, lane, type, element, step)                    \
            }                                                                                      \
            OPSCOPE__HALVE(lanes, OPSCOPE__LANES, OPSCOPE__TOTALS, lane, join_step)                \
            OPSCOPE__JOIN_TOTALS(totals, wide, lanes, lane, join_step)                             \
        }                                                                                          \
        OPSCOPE__HALVE(totals, OPSCOPE__TOTALS, 1, wide, join_step)                                \
        {                                                                                          \
            const wide s = (total), a = totals[0];                                                 \
            (total) = (wide)(join_step);                                                           \
        }                                                                                          \
        for (int64_t i = done; i < (count); i++) {                                                 \
            const wide s = (total);                                                                \
            const type a = (type)(element);                                                        \
            (total) = (wide)(step);                                                                \
        }                                                                                          \
    } while (0)

#define OPSCOPE__FOLD_RUN(total, wide, lane, start_value, type, element, count, step, join_step)   \
    OPSCOPE__FOLD_BY((void)0, (void)0, total, wide, lane, start_value, type, element, count, step, \
                     join_step)

/* Elements that are not side by side are copied to `room`, stretch by stretch. */
#define OPSCOPE__FOLD_ROWS(name, type, wide, lane, start_value, step, join_step)                   \
    static const type *name##_gather(type *room, const char *data, int64_t next, int64_t count)    \
    {                                                                                              \
        for (int64_t i = 0; i < count && i < OPSCOPE__STRETCH; i++) {                              \
            room[i] = *(const type *)(const void *)(data + i * next);                              \
        }                                                                                          \
        return room;                                                                               \
    }                                                                                              \
    OPSCOPE__WIDTH static void name##_rows(void *accumulators, const char *data, int64_t stride,   \
                                           int64_t count, int64_t next, int64_t length)            \
    {                                                                                              \
        wide *into = accumulators;                                                                 \
        type room[OPSCOPE__STRETCH];                                                               \
        int64_t half = next == sizeof(type) ? opscope__half_of(length) : 0;                        \
        for (; count > 0; count--, into++, data += stride) {                                       \
            wide total = *into;                                                                    \
            const type *row = (const type *)(const void *)data, *in = row, *ahead = row;           \
            int64_t first = 0; /* the number of the element at `in` */                             \
            OPSCOPE__FOLD_BY(                                                                      \
                first = done; if (next != sizeof(type)) {                                          \
                    in = name##_gather(room, data + done * next, next, length - done);             \
                } else {                                                                           \
                    in = row + opscope__stretch_at(done, half);                                    \
                    ahead = row + opscope__ahead_of(done, half, OPSCOPE__MANY(lane));              \
                },                                                                                 \
                              OPSCOPE__FETCH(ahead + (done - first), lane), total, wide, lane,     \
                              start_value, type, in[i - first], length, step, join_step);          \
            *into = total;                                                                         \
        }                                                                                          \
    }

/* Reads and writes the accumulators once for ROWS_AT_ONCE elements. */
#define OPSCOPE__FOLD_COLUMNS(name, type, wide, lane, start_value, step, join_step)                \
    static void name##_columns(void *accumulators, const char *data, int64_t stride,               \
                               int64_t count, int64_t next, int64_t rows)                          \
    {                                                                                              \
        wide *into = accumulators;                                                                 \
        for (int64_t some; rows > 0; rows -= some, data += some * next) {                          \
            some = rows < OPSCOPE__ROWS_AT_ONCE ? 1 : OPSCOPE__ROWS_AT_ONCE;                       \
            if (stride != sizeof(type)) {                                                          \
                some = rows < OPSCOPE__ROWS_AT_ONCE ? rows : OPSCOPE__ROWS_AT_ONCE;                \
                for (int64_t i = 0; i < count; i++) {                                              \
                    wide s = into[i];                                                              \
                    for (int64_t j = 0; j < some; j++) {                                           \
                        const type a =                                                             \
                            *(const type *)(const void *)(data + i * stride + j * next);           \
                        s = (wide)(step);                                                          \
                    }                                                                              \
                    into[i] = s;                                                                   \
                }                                                                                  \
            } else if (some == 1) {                                                                \
                const type *in = (const type *)(const void *)data;                                 \
                OPSCOPE__INDEPENDENT                                                               \
                for (int64_t i = 0; i < count; i++) {                                              \
                    const wide s = into[i];                                                        \
                    const type a = in[i];                                                          \
                    into[i] = (wide)(step);                                                        \
                }                                                                                  \
            } else {                                                                               \
                OPSCOPE__INDEPENDENT                                                               \
                for (int64_t i = 0; i < count; i++) {                                              \
                    lane joined = (lane)(start_value);                                             \
                    for (int j = 0; j < OPSCOPE__ROWS_AT_ONCE; j++) {                              \
                        const lane s = joined;                                                     \
                        const type a = ((const type *)(const void *)(data + j * next))[i];         \
                        joined = (lane)(step);                                                     \
                    }                                                                              \
                    const wide s = into[i];                                                        \
                    const lane a = joined;                                                         \
                    into[i] = (wide)(join_step);                                                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

#define OPSCOPE__FOLD(name, type, wide, lane, start_value, step, join_step, out_type, result)      \
    OPSCOPE__FOLD_ROWS(name, type, wide, lane, start_value, step, join_step)                       \
    OPSCOPE__FOLD_COLUMNS(name, type, wide, lane, start_value, step, join_step)                    \
    static void name##_join(void *accumulators, const void *more, int64_t count)                   \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const wide s = ((wide *)accumulators)[i], a = ((const wide *)more)[i];                 \
            ((wide *)accumulators)[i] = (wide)(join_step);                                         \
        }                                                                                          \
    }                                                                                              \
    static void name##_finish(char *out, int64_t stride, const void *accumulators, int64_t count,  \
                              int64_t folded)                                                      \
    {                                                                                              \
        (void)folded;                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const wide s = ((const wide *)accumulators)[i];                                        \
            *(out_type *)(void *)(out + i * stride) = (out_type)(result);                          \
        }                                                                                          \
    }

#define OPSCOPE__FOLD_SUM(name, type, wide, lane, out_type, result)                                \
    OPSCOPE__FOLD(name, type, wide, lane, 0, s + a, s + a, out_type, result)

#define OPSCOPE__FOLDED(name, bits, price)                                                         \
    {.rows = name##_rows,                                                                          \
     .columns = name##_columns,                                                                    \
     .join = name##_join,                                                                          \
     .finish = name##_finish,                                                                      \
     .start = (bits),                                                                              \
     .cost = (price)}

#endif
