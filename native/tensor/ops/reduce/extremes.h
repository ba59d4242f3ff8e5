/* tensor/ops/reduce/extremes.h -- shared by amax and amin, and by argmax and argmin: the extreme
 * element, by `<` or `>`, and its index. NaN precedes all numbers. */
#ifndef OPSCOPE_TENSOR_OPS_REDUCE_EXTREMES_H
#define OPSCOPE_TENSOR_OPS_REDUCE_EXTREMES_H

#include "tensor/ops/reduce/reduction.h"
#include "tensor/ops/reduce/rows.h"

#define OPSCOPE__FIRST_FLOAT(before) a != a ? a : a before s ? a : s
#define OPSCOPE__FIRST_INTEGER(before) a before s ? a : s

/* Reductions by dtype. The initial values: `last` for float32, then int32, int64 and uint8;
 * `last_bits` for float64. */
#define OPSCOPE__EXTREMES(name, before, last, last32, last64, last8, last_bits)                    \
    OPSCOPE__FOLD(name##_float32, float, double, float, last, OPSCOPE__FIRST_FLOAT(before),        \
                  OPSCOPE__FIRST_FLOAT(before), float, s)                                          \
    OPSCOPE__FOLD(name##_float64, double, double, double, last, OPSCOPE__FIRST_FLOAT(before),      \
                  OPSCOPE__FIRST_FLOAT(before), double, s)                                         \
    OPSCOPE__FOLD(name##_int32, int32_t, int64_t, int32_t, last32, OPSCOPE__FIRST_INTEGER(before), \
                  OPSCOPE__FIRST_INTEGER(before), int32_t, s)                                      \
    OPSCOPE__FOLD(name##_int64, int64_t, int64_t, int64_t, last64, OPSCOPE__FIRST_INTEGER(before), \
                  OPSCOPE__FIRST_INTEGER(before), int64_t, s)                                      \
    OPSCOPE__FOLD(name##_uint8, uint8_t, int64_t, uint8_t, last8, OPSCOPE__FIRST_INTEGER(before),  \
                  OPSCOPE__FIRST_INTEGER(before), uint8_t, s)                                      \
    static const struct opscope__reduction name[OPSCOPE_DTYPE_COUNT] =                             \
        OPSCOPE__FOLDS(name, last_bits, (uint64_t)(last64));

/* `word` is for messages about empty tensors: "largest". */
static inline int opscope__extreme_forward(const struct opscope__call *call,
                                           const struct opscope__reduction *reductions,
                                           const char *word, const opscope_argument *arguments,
                                           opscope_tensor **out)
{
    static const opscope_dtype outputs_as[OPSCOPE_DTYPE_COUNT] = {
        [OPSCOPE_FLOAT32] = OPSCOPE_FLOAT32, [OPSCOPE_FLOAT64] = OPSCOPE_FLOAT64,
        [OPSCOPE_INT32] = OPSCOPE_INT32,     [OPSCOPE_INT64] = OPSCOPE_INT64,
        [OPSCOPE_UINT8] = OPSCOPE_UINT8,     [OPSCOPE_BOOL] = OPSCOPE_BOOL,
    };
    const opscope_tensor *self = arguments[0].as.tensor;
    uint32_t set;
    int status = opscope__reduced_set(call, self, &arguments[1], &set);
    for (int i = 0; i < self->dims && status == OPSCOPE_OK; i++) {
        if ((set >> i & 1) != 0 && opscope__sizes(self)[i] == 0) {
            status = opscope_tensor_fail(
                OPSCOPE_ERROR_RUNTIME, "%s: no elements, so no %s one (sizes %s)",
                opscope__call_name(call), word, opscope__shape_text(self).text);
        }
    }
    return status == OPSCOPE_OK
               ? opscope__reduce_arguments(call, reductions, outputs_as, arguments, NULL, out)
               : status;
}

/* Equal elements share the gradient. */
static inline int opscope__extreme_backward(const struct opscope__backward *backward,
                                            opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *self = backward->inputs[0];
    const opscope_argument *dim = &backward->arguments[1];
    opscope_tensor *grad = opscope__unreduce(&f, backward->gradients[0], self, dim);
    opscope_tensor *best = opscope__unreduce(&f, backward->saved[0], self, dim);
    opscope_tensor *is_best = opscope__f2(&f, "eq", self, best);
    opscope_tensor *ties = opscope__f(&f, "sum", opscope__T(is_best), *dim, opscope__B(true));
    opscope_tensor *share = opscope__f2(&f, "div", is_best, ties);
    gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, share));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

/* Search loops by dtype: the first index of each row's extreme. */
#define OPSCOPE__SEARCH(name, type, before, last, first)                                           \
    static void name(char *out, const char *const *inputs, int64_t begin, int64_t end,             \
                     int64_t width)                                                                \
    {                                                                                              \
        for (int64_t n = begin; n < end; n++) {                                                    \
            const type *in = (const type *)(const void *)inputs[0] + n * width;                    \
            type best = last;                                                                      \
            OPSCOPE__FOLD_RUN(best, type, type, last, type, in[i], width, first(before),           \
                              first(before));                                                      \
            int64_t place = 0;                                                                     \
            while (in[place] != best && (best == best || in[place] == in[place])) {                \
                place++;                                                                           \
            }                                                                                      \
            ((int64_t *)(void *)out)[n] = place;                                                   \
        }                                                                                          \
    }
#define OPSCOPE__SEARCHES(name, before, last, last32, last64, last8)                               \
    OPSCOPE__SEARCH(name##_float32, float, before, last, OPSCOPE__FIRST_FLOAT)                     \
    OPSCOPE__SEARCH(name##_float64, double, before, last, OPSCOPE__FIRST_FLOAT)                    \
    OPSCOPE__SEARCH(name##_int32, int32_t, before, last32, OPSCOPE__FIRST_INTEGER)                 \
    OPSCOPE__SEARCH(name##_int64, int64_t, before, last64, OPSCOPE__FIRST_INTEGER)                 \
    OPSCOPE__SEARCH(name##_uint8, uint8_t, before, last8, OPSCOPE__FIRST_INTEGER)                  \
    static const opscope__row_loop name[OPSCOPE_DTYPE_COUNT] = {OPSCOPE__ALL_LOOPS(name)};

/* Searches along dimension `dim` (an argument; None: all of them, in row-major order). */
static inline int opscope__search_forward(const struct opscope__call *call,
                                          const opscope__row_loop *searches,
                                          const opscope_argument *arguments, opscope_tensor **out)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor, *rows = NULL, *made = NULL;
    bool all = arguments[1].kind == OPSCOPE_ARGUMENT_NONE;
    int dim = 0;
    int status =
        all ? OPSCOPE_OK : opscope__wrap_dim(name, arguments[1].as.integer, self->dims, &dim);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t width = all ? self->count : self->dims > 0 ? opscope__sizes(self)[dim] : 1;
    if (searches[self->dtype] == NULL || width == 0) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: not defined for %s of sizes %s; at least one number expected", name,
            opscope_dtype_name((opscope_dtype)self->dtype), opscope__shape_text(self).text);
    }
    status = all ? opscope__contiguous(self, &rows) : opscope__as_rows(self, dim, &rows);
    int64_t shape[2 * OPSCOPE_DIM_LIMIT], *strides = shape + OPSCOPE_DIM_LIMIT;
    int dims = 0, last = self->dims - 1;
    if (status == OPSCOPE_OK) {
        for (; !all && dims < rows->dims; dims++) {
            shape[dims] = dims < rows->dims - 1 ? opscope__sizes(rows)[dims] : 1;
        }
        status = opscope__tensor_empty(dims, shape, OPSCOPE_INT64, &made);
    }
    if (status == OPSCOPE_OK) {
        struct opscope__rows each = {searches[self->dtype], made->data, {rows->data, NULL}, width};
        opscope__parallel(made->count, OPSCOPE__GRAIN / width + 1, opscope__rows_part, &each);
        dims = 0;
        for (int i = 0; i <= last; i++) {
            bool stays = !all && i != dim;
            if (stays || arguments[2].as.integer != 0) {
                strides[dims] = stays ? opscope__strides(made)[i == last ? dim : i] : 1;
                shape[dims++] = stays ? opscope__sizes(self)[i] : 1;
            }
        }
        status = opscope__tensor_view(made, dims, shape, strides, 0, out);
    }
    opscope_tensor_release(rows);
    opscope_tensor_release(made);
    return status;
}

#endif
