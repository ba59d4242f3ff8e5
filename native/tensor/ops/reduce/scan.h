/* tensor/ops/reduce/scan.h -- shared by cumsum and cumprod: folds each element with all elements
 * before it. */
#ifndef OPSCOPE_TENSOR_OPS_REDUCE_SCAN_H
#define OPSCOPE_TENSOR_OPS_REDUCE_SCAN_H

#include "tensor/ops/reduce/rows.h"

/* Row loops: `step` is an expression in `s`, the value so far, and `a`, an element. Floats are
 * folded in double. */
#define OPSCOPE__SCAN_LOOP(name, type, wide, start, step)                                          \
    static void name(char *out, const char *const *inputs, int64_t begin, int64_t end,             \
                     int64_t width)                                                                \
    {                                                                                              \
        for (int64_t n = begin * width; n < end * width; n += width) {                             \
            const type *in = (const type *)(const void *)inputs[0] + n;                            \
            type *into = (type *)(void *)out + n;                                                  \
            wide s = start;                                                                        \
            for (int64_t i = 0; i < width; i++) {                                                  \
                const wide a = (wide)in[i];                                                        \
                s = (wide)(step);                                                                  \
                into[i] = (type)s;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }

/* A table of these loops by dtype. */
#define OPSCOPE__SCAN(name, start, step)                                                           \
    OPSCOPE__SCAN_LOOP(name##_float32, float, double, start, step)                                 \
    OPSCOPE__SCAN_LOOP(name##_float64, double, double, start, step)                                \
    OPSCOPE__SCAN_LOOP(name##_int64, int64_t, int64_t, start, step)                                \
    static const opscope__row_loop name[OPSCOPE_DTYPE_COUNT] = {                                   \
        [OPSCOPE_FLOAT32] = name##_float32,                                                        \
        [OPSCOPE_FLOAT64] = name##_float64,                                                        \
        [OPSCOPE_INT64] = name##_int64,                                                            \
    };

/* Integers and bools are folded in int64. */
static inline int opscope__scan_forward(const struct opscope__call *call,
                                        const opscope__row_loop *loops,
                                        const opscope_argument *arguments, opscope_tensor **out)
{
    opscope_tensor *self = arguments[0].as.tensor, *converted = NULL;
    int status = OPSCOPE_OK;
    if (!opscope_dtype_is_floating((opscope_dtype)self->dtype) && self->dtype != OPSCOPE_INT64) {
        status = opscope__convert(self, OPSCOPE_INT64, &converted);
        self = converted;
    }
    if (status == OPSCOPE_OK) {
        status = opscope__along_argument(call, loops, self, NULL, &arguments[1], 4, out);
    }
    opscope_tensor_release(converted);
    return status;
}

#endif
