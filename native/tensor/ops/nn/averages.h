/* tensor/ops/nn/averages.h -- pools that compute means: of sliding windows, or of a given number of
 * windows.
 *
 * Along each dimension an output has a window [begin, end) of the image and a divisor; the mean is
 * the sum over both windows, divided by both divisors.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_AVERAGES_H
#define OPSCOPE_TENSOR_OPS_NN_AVERAGES_H

#include <string.h>

#include "tensor/ops/nn/pooling.h"

struct opscope__averaged {
    int64_t begin, end, divisor;
};

struct opscope__averages {
    struct opscope__pooling pooling;
    bool adapts; /* out_size gives the number of windows; else they slide: */
    struct opscope__window window[2];
    bool counts_padding;
    int64_t divisor[2]; /* 0: the number of elements */
    const char *from;
    char *to;
};

/* The window of output `index` along dimension `dim`. */
static inline struct opscope__averaged opscope__averaged_at(const struct opscope__averages *a,
                                                            int dim, int64_t index)
{
    int64_t size = a->pooling.size[dim], count = a->pooling.out_size[dim];
    if (a->adapts) {
        int64_t begin = index * size / count, end = ((index + 1) * size + count - 1) / count;
        return (struct opscope__averaged){begin, end, end - begin};
    }
    const struct opscope__window *w = &a->window[dim];
    int64_t begin = index * w->stride - w->padding, end = begin + w->kernel;
    end = end < size + w->padding ? end : size + w->padding;
    int64_t padded = end - begin;
    begin = begin > 0 ? begin : 0;
    end = end < size ? end : size;
    int64_t divisor = a->counts_padding ? padded : end - begin;
    return (struct opscope__averaged){begin, end, a->divisor[dim] != 0 ? a->divisor[dim] : divisor};
}

#define OPSCOPE__AVERAGES(name, type)                                                              \
    static void name(int64_t begin, int64_t end, void *arg)                                        \
    {                                                                                              \
        const struct opscope__averages *a = arg;                                                   \
        const int64_t width = a->pooling.size[1], in = a->pooling.size[0] * width;                 \
        const int64_t rows = a->pooling.out_size[0], columns = a->pooling.out_size[1];             \
        type *to = (type *)(void *)a->to + begin * rows * columns;                                 \
        for (int64_t i = begin * rows; i < end * rows; i++) {                                      \
            const type *plane = (const type *)(const void *)a->from + i / rows * in;               \
            const struct opscope__averaged high = opscope__averaged_at(a, 0, i % rows);            \
            for (int64_t j = 0; j < columns; j++) {                                                \
                const struct opscope__averaged wide = opscope__averaged_at(a, 1, j);               \
                type sum = 0;                                                                      \
                for (int64_t y = high.begin; y < high.end; y++) {                                  \
                    for (int64_t x = wide.begin; x < wide.end; x++) {                              \
                        sum += plane[y * width + x];                                               \
                    }                                                                              \
                }                                                                                  \
                *to++ = sum / (type)(high.divisor * wide.divisor);                                 \
            }                                                                                      \
        }                                                                                          \
    }

/* Backward: adds each output's gradient, divided, to all elements of its window. */
#define OPSCOPE__SPREADS(name, type)                                                               \
    static void name(int64_t begin, int64_t end, void *arg)                                        \
    {                                                                                              \
        const struct opscope__averages *a = arg;                                                   \
        const int64_t width = a->pooling.size[1], in = a->pooling.size[0] * width;                 \
        const int64_t rows = a->pooling.out_size[0], columns = a->pooling.out_size[1];             \
        const type *from = (const type *)(const void *)a->from + begin * rows * columns;           \
        memset((type *)(void *)a->to + begin * in, 0,                                              \
               (size_t)((end - begin) * in) * sizeof(type));                                       \
        for (int64_t i = begin * rows; i < end * rows; i++) {                                      \
            type *plane = (type *)(void *)a->to + i / rows * in;                                   \
            const struct opscope__averaged high = opscope__averaged_at(a, 0, i % rows);            \
            for (int64_t j = 0; j < columns; j++) {                                                \
                const struct opscope__averaged wide = opscope__averaged_at(a, 1, j);               \
                const type share = *from++ / (type)(high.divisor * wide.divisor);                  \
                for (int64_t y = high.begin; y < high.end; y++) {                                  \
                    for (int64_t x = wide.begin; x < wide.end; x++) {                              \
                        plane[y * width + x] += share;                                             \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/* Sets up sliding windows. `arguments` are kernel_size, stride, padding, ceil_mode,
 * count_include_pad and divisor_override. */
static inline int opscope__averages_slide(struct opscope__averages *a,
                                          const opscope_argument *arguments)
{
    const char *name = a->pooling.name;
    a->counts_padding = arguments[4].as.integer != 0;
    if (arguments[5].kind != OPSCOPE_ARGUMENT_NONE) {
        a->divisor[0] = arguments[5].as.integer;
        a->divisor[1] = 1;
        if (a->divisor[0] == 0) {
            return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: divisor_override is 0", name);
        }
    }
    int status =
        opscope__window_read(name, &arguments[0], &arguments[1], &arguments[2], NULL, a->window);
    return status == OPSCOPE_OK
               ? opscope__pooling_slide(&a->pooling, a->window, arguments[3].as.integer != 0)
               : status;
}

/* Sets up out_size windows that cover the image. */
static inline int opscope__averages_adapt(struct opscope__averages *a)
{
    a->adapts = true;
    for (int i = 0; i < 2; i++) {
        if (a->pooling.size[i] > INT32_MAX || a->pooling.out_size[i] > INT32_MAX) {
            return opscope_tensor_fail(
                OPSCOPE_ERROR_VALUE, "%s: from %lld elements to %lld: at most %d", a->pooling.name,
                (long long)a->pooling.size[i], (long long)a->pooling.out_size[i], INT32_MAX);
        }
    }
    return OPSCOPE_OK;
}

/* Runs the part for the dtype, from one tensor to a new one of those sizes. */
static inline int opscope__averages_run(struct opscope__averages *a, opscope__part float32,
                                        opscope__part float64, opscope_tensor *from,
                                        const int64_t *sizes, opscope_tensor **out)
{
    opscope_tensor *flat = NULL, *made = NULL;
    int status = opscope__contiguous(from, &flat);
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(a->pooling.dims, sizes, a->pooling.dtype, &made);
    }
    if (status == OPSCOPE_OK) {
        a->from = flat->data;
        a->to = made->data;
        opscope__each_plane(&a->pooling, 4, a->pooling.dtype == OPSCOPE_FLOAT32 ? float32 : float64,
                            a);
        *out = made;
    }
    opscope_tensor_release(flat);
    return status;
}

/* The forward: means of `input`, whose pooling and windows are set up. */
static inline int opscope__averages_forward(struct opscope__averages *a, opscope__part float32,
                                            opscope__part float64, opscope_tensor *input,
                                            opscope_tensor **out)
{
    int64_t sizes[4];
    opscope__pooling_sizes(&a->pooling, sizes);
    return opscope__averages_run(a, float32, float64, input, sizes, out);
}

/* The backward: distributes `grad`, whose sizes it checks, over the windows. */
static inline int opscope__averages_backward(struct opscope__averages *a, opscope__part float32,
                                             opscope__part float64, opscope_tensor *grad,
                                             opscope_tensor **out)
{
    int status = opscope__pooling_check_output(&a->pooling, "grad_output", a->pooling.dtype, grad);
    return status == OPSCOPE_OK
               ? opscope__averages_run(a, float32, float64, grad, a->pooling.sizes, out)
               : status;
}

/* For the backward: reads the input's sizes, which are arguments[1], and the gradient's dtype. */
static inline int opscope__averages_read_sizes(const struct opscope__call *call,
                                               const opscope_argument *arguments,
                                               struct opscope__averages *out)
{
    return opscope__pooling_read(opscope__call_name(call), (int)arguments[1].count,
                                 arguments[1].as.integers,
                                 (opscope_dtype)arguments[0].as.tensor->dtype, &out->pooling);
}

#endif
