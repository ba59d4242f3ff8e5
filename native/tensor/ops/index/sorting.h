/* tensor/ops/index/sorting.h -- sorts rows together with the index of each element: for sort and
 * topk.
 *
 * A merge sort that starts with short runs and keeps the order of equal elements. If only a few
 * elements of a row are wanted, one pass selects them. NaN counts as the largest.
 */
#ifndef OPSCOPE_TENSOR_OPS_INDEX_SORTING_H
#define OPSCOPE_TENSOR_OPS_INDEX_SORTING_H

#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "tensor/ops/reduce/rows.h"

struct opscope__sorting {
    const char *in;
    char *values;
    int64_t *indices;
    int64_t width;
    int64_t wanted; /* number of elements wanted from each row, the first in order */
    bool is_short;  /* atomic: memory ran out; any part stores it, the caller reads it after all
                       parts have ended */
};

enum { OPSCOPE__SORTED_RUN = 16, OPSCOPE__PICKED_LIMIT = 64 };

/* `before`: true if x, which comes later in the row, belongs before y. */
#define OPSCOPE__SORT(name, type, before)                                                          \
    struct name##_pair {                                                                           \
        type a;                                                                                    \
        int64_t index;                                                                             \
    };                                                                                             \
    /* Moves the last of `count` pairs, the others being in order, to its position. */             \
    static void name##_sink(struct name##_pair *p, int64_t count)                                  \
    {                                                                                              \
        const struct name##_pair moved = p[count - 1];                                             \
        const type x = moved.a;                                                                    \
        int64_t j = count - 1;                                                                     \
        for (; j > 0; j--) {                                                                       \
            const type y = p[j - 1].a;                                                             \
            if (!(before)) {                                                                       \
                break;                                                                             \
            }                                                                                      \
            p[j] = p[j - 1];                                                                       \
        }                                                                                          \
        p[j] = moved;                                                                              \
    }                                                                                              \
    static void name##_merge(const struct name##_pair *from, struct name##_pair *to,               \
                             int64_t middle, int64_t end)                                          \
    {                                                                                              \
        int64_t left = 0, right = middle;                                                          \
        for (int64_t i = 0; i < end; i++) {                                                        \
            bool takes_right = left == middle;                                                     \
            if (left < middle && right < end) {                                                    \
                const type x = from[right].a, y = from[left].a;                                    \
                takes_right = (before);                                                            \
            }                                                                                      \
            to[i] = takes_right ? from[right++] : from[left++];                                    \
        }                                                                                          \
    }                                                                                              \
    static const struct name##_pair *name##_merged(const type *in, int64_t width,                  \
                                                   struct name##_pair *pairs)                      \
    {                                                                                              \
        struct name##_pair *other = pairs + width;                                                 \
        for (int64_t j = 0; j < width; j++) {                                                      \
            pairs[j] = (struct name##_pair){in[j], j};                                             \
            const int64_t start = j / OPSCOPE__SORTED_RUN * OPSCOPE__SORTED_RUN;                   \
            name##_sink(pairs + start, j - start + 1);                                             \
        }                                                                                          \
        for (int64_t run = OPSCOPE__SORTED_RUN; run < width; run *= 2) {                           \
            for (int64_t j = 0; j < width; j += 2 * run) {                                         \
                int64_t end = width - j < 2 * run ? width - j : 2 * run;                           \
                name##_merge(pairs + j, other + j, end < run ? end : run, end);                    \
            }                                                                                      \
            struct name##_pair *swapped = pairs;                                                   \
            pairs = other;                                                                         \
            other = swapped;                                                                       \
        }                                                                                          \
        return pairs;                                                                              \
    }                                                                                              \
    static const struct name##_pair *name##_picked(const type *in, int64_t width,                  \
                                                   struct name##_pair *pairs, int64_t wanted)      \
    {                                                                                              \
        int64_t count = 0;                                                                         \
        for (int64_t j = 0; j < width; j++) {                                                      \
            const type x = in[j], y = count > 0 ? pairs[count - 1].a : x;                          \
            if (count < wanted) {                                                                  \
                pairs[count++] = (struct name##_pair){x, j};                                       \
                name##_sink(pairs, count);                                                         \
            } else if (before) {                                                                   \
                pairs[count - 1] = (struct name##_pair){x, j};                                     \
                name##_sink(pairs, count);                                                         \
            }                                                                                      \
        }                                                                                          \
        return pairs;                                                                              \
    }                                                                                              \
    static void name(int64_t begin, int64_t end, void *arg)                                        \
    {                                                                                              \
        struct opscope__sorting *s = arg;                                                          \
        bool is_few = s->wanted <= OPSCOPE__PICKED_LIMIT && s->wanted < s->width;                  \
        struct name##_pair *pairs = malloc(2 * (size_t)s->width * sizeof *pairs);                  \
        if (pairs == NULL) {                                                                       \
            opscope__store_relaxed(&s->is_short, true);                                            \
            return;                                                                                \
        }                                                                                          \
        for (int64_t row = begin; row < end && s->wanted > 0; row++) {                             \
            const type *in = (const type *)(const void *)s->in + row * s->width;                   \
            const struct name##_pair *ordered =                                                    \
                is_few ? name##_picked(in, s->width, pairs, s->wanted)                             \
                       : name##_merged(in, s->width, pairs);                                       \
            for (int64_t j = 0; j < s->wanted; j++) {                                              \
                ((type *)(void *)s->values)[row * s->wanted + j] = ordered[j].a;                   \
                s->indices[row * s->wanted + j] = ordered[j].index;                                \
            }                                                                                      \
        }                                                                                          \
        free(pairs);                                                                               \
    }

OPSCOPE__SORT(opscope__up_float32, float, x < y || (y != y && x == x))
OPSCOPE__SORT(opscope__up_float64, double, x < y || (y != y && x == x))
OPSCOPE__SORT(opscope__up_int32, int32_t, x < y)
OPSCOPE__SORT(opscope__up_int64, int64_t, x < y)
OPSCOPE__SORT(opscope__up_uint8, uint8_t, x < y)
OPSCOPE__SORT(opscope__down_float32, float, x > y || (x != x && y == y))
OPSCOPE__SORT(opscope__down_float64, double, x > y || (x != x && y == y))
OPSCOPE__SORT(opscope__down_int32, int32_t, x > y)
OPSCOPE__SORT(opscope__down_int64, int64_t, x > y)
OPSCOPE__SORT(opscope__down_uint8, uint8_t, x > y)

static const opscope__part opscope__sorters[2][OPSCOPE_DTYPE_COUNT] = {
    /* ascending, descending */
    {[OPSCOPE_FLOAT32] = opscope__up_float32,
     [OPSCOPE_FLOAT64] = opscope__up_float64,
     [OPSCOPE_INT32] = opscope__up_int32,
     [OPSCOPE_INT64] = opscope__up_int64,
     [OPSCOPE_UINT8] = opscope__up_uint8,
     [OPSCOPE_BOOL] = opscope__up_uint8},
    {[OPSCOPE_FLOAT32] = opscope__down_float32,
     [OPSCOPE_FLOAT64] = opscope__down_float64,
     [OPSCOPE_INT32] = opscope__down_int32,
     [OPSCOPE_INT64] = opscope__down_int64,
     [OPSCOPE_UINT8] = opscope__down_uint8,
     [OPSCOPE_BOOL] = opscope__down_uint8}};

/* A view of the rows in the order of self's dimensions. */
static inline int opscope__rows_seen(const opscope_tensor *self, const opscope_tensor *rows,
                                     int dim, opscope_tensor **out)
{
    return self->dims > 0 ? opscope__exchange_last(rows, dim, out)
                          : opscope__tensor_view(rows, 0, NULL, NULL, 0, out);
}

/* The first `wanted` elements (-1: all) in order along a dimension, and their indices. */
static inline int opscope__sorted(const char *name, const opscope_tensor *self, int dim,
                                  bool descending, int64_t wanted, opscope_tensor **outputs)
{
    opscope_tensor *rows = NULL, *values = NULL, *indices = NULL;
    opscope__part part = opscope__sorters[descending][self->dtype];
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    if (part == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: not defined for %s (sizes %s)", name,
                                   opscope_dtype_name((opscope_dtype)self->dtype),
                                   opscope__shape_text(self).text);
    }
    int status = opscope__as_rows(self, dim, &rows);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int last = rows->dims - 1;
    int64_t width = opscope__sizes(rows)[last];
    memcpy(sizes, opscope__sizes(rows), (size_t)rows->dims * sizeof *sizes);
    sizes[last] = wanted < 0 ? width : wanted;
    if ((status = opscope__tensor_empty(rows->dims, sizes, (opscope_dtype)self->dtype, &values)) ==
        OPSCOPE_OK) {
        status = opscope__tensor_empty(rows->dims, sizes, OPSCOPE_INT64, &indices);
    }
    if (status == OPSCOPE_OK && rows->count > 0) {
        struct opscope__sorting sorting = {.in = rows->data,
                                           .values = values->data,
                                           .indices = (int64_t *)(void *)indices->data,
                                           .width = width,
                                           .wanted = sizes[last]};
        opscope__parallel(rows->count / width, OPSCOPE__GRAIN / (width * 32) + 1, part, &sorting);
        if (sorting.is_short) {
            status = opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: out of memory", name);
        }
    }
    if (status == OPSCOPE_OK) {
        status = opscope__rows_seen(self, values, dim, &outputs[0]);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__rows_seen(self, indices, dim, &outputs[1]);
    }
    opscope_tensor_release(rows);
    opscope_tensor_release(values);
    opscope_tensor_release(indices);
    return status;
}

/* The gradient of sorted elements: each goes to its original position. */
static inline int opscope__sorted_backward(const struct opscope__backward *backward,
                                           opscope_argument dim, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *self = backward->inputs[0];
    opscope_tensor *grad = backward->gradients[0];
    opscope_tensor *zeros =
        grad == NULL ? NULL
                     : opscope__f(&f, "zeros", opscope__L(opscope__sizes(self), self->dims),
                                  opscope__I(grad->dtype));
    gradients[0] = opscope__keep(opscope__f(&f, "scatter_add", opscope__T(zeros), dim,
                                            opscope__T(backward->saved[0]), opscope__T(grad)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

#endif
