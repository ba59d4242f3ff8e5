/* tensor/ops/nn/max_pool2d.c -- core::max_pool2d: the maximum of each window. */
#include <math.h>

#include "tensor/ops/nn/pooling.h"

struct work {
    struct opscope__pooling pooling;
    struct opscope__window window[2];
    const char *input;
    char *output;
    int32_t *places; /* position within the plane of each output's element; -1: none */
};

/* The outputs along a dimension for which a position of the kernel lies within the image: [begin,
 * end). For those before `old`, no earlier position does. */
struct reach {
    int64_t first, begin, old, end; /* first: the image's element for output 0, may lie outside */
};

/* Call it in the order of positions, the first time with old at least the count. */
static struct reach reach_of(const struct opscope__window *window, int64_t place, int64_t size,
                             int64_t count, int64_t old)
{
    struct reach reach = {.first = place * window->dilation - window->padding};
    reach.begin = opscope__first_at(-reach.first, window->stride, count);
    reach.end = opscope__first_at(size - reach.first, window->stride, count);
    reach.old = old < reach.end ? old : reach.end;
    return reach;
}

/* Updates an output row with one position of the kernel. The first position within the image sets
 * the element; later ones replace it if they are larger. NaN is larger than all. It uses masks,
 * because a branch on which of two elements is larger is unpredictable. */
#define MEET(name, type, bits)                                                                     \
    static inline void name(type *restrict best, int32_t *restrict places,                         \
                            const type *restrict row, int32_t place, int64_t begin, int64_t old,   \
                            int64_t end, int64_t stride)                                           \
    {                                                                                              \
        for (int64_t j = begin; j < old; j++) {                                                    \
            best[j] = row[j * stride];                                                             \
            places[j] = place + (int32_t)(j * stride);                                             \
        }                                                                                          \
        for (int64_t j = old; j < end; j++) {                                                      \
            union {                                                                                \
                type number;                                                                       \
                bits all;                                                                          \
            } value = {row[j * stride]}, kept = {best[j]};                                         \
            const bool is_larger = (value.number > kept.number) | (value.number != value.number);  \
            kept.all ^= (kept.all ^ value.all) & -(bits)is_larger;                                 \
            best[j] = kept.number;                                                                 \
            places[j] ^= (places[j] ^ (place + (int32_t)(j * stride))) & -(int32_t)is_larger;      \
        }                                                                                          \
    }

#define PLANE(name, type, meet)                                                                    \
    static void name(const struct work *w, const type *plane, type *best, int32_t *places)         \
    {                                                                                              \
        const struct opscope__window *high = &w->window[0], *wide = &w->window[1];                 \
        const int64_t width = w->pooling.size[1], columns = w->pooling.out_size[1];                \
        struct reach rows = {.begin = w->pooling.out_size[0]};                                     \
        for (int64_t ky = 0; ky < high->kernel; ky++) {                                            \
            rows = reach_of(high, ky, w->pooling.size[0], w->pooling.out_size[0], rows.begin);     \
            struct reach across = {.begin = columns};                                              \
            for (int64_t kx = 0; kx < wide->kernel; kx++) {                                        \
                across = reach_of(wide, kx, width, columns, across.begin);                         \
                for (int64_t i = rows.begin; i < rows.end; i++) {                                  \
                    const int64_t at = (rows.first + i * high->stride) * width + across.first;     \
                    const int64_t old = i < rows.old ? across.old : across.begin;                  \
                    type *to = best + i * columns;                                                 \
                    int32_t *to_places = places + i * columns;                                     \
                    if (wide->stride == 2) {                                                       \
                        meet(to, to_places, plane + at, (int32_t)at, across.begin, old,            \
                             across.end, 2);                                                       \
                    } else if (wide->stride == 1) {                                                \
                        meet(to, to_places, plane + at, (int32_t)at, across.begin, old,            \
                             across.end, 1);                                                       \
                    } else {                                                                       \
                        meet(to, to_places, plane + at, (int32_t)at, across.begin, old,            \
                             across.end, wide->stride);                                            \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/* With dilation, all positions of a window may lie in the padding. */
#define PLANES(name, type, plane)                                                                  \
    static void name(int64_t begin, int64_t end, void *arg)                                        \
    {                                                                                              \
        const struct work *w = arg;                                                                \
        const int64_t in = w->pooling.size[0] * w->pooling.size[1];                                \
        const int64_t out = w->pooling.out_size[0] * w->pooling.out_size[1];                       \
        const bool may_be_empty = w->window[0].dilation > 1 || w->window[1].dilation > 1;          \
        for (int64_t i = begin; i < end; i++) {                                                    \
            type *best = (type *)(void *)w->output + i * out;                                      \
            int32_t *places = w->places + i * out;                                                 \
            for (int64_t j = 0; j < out && may_be_empty; j++) {                                    \
                best[j] = -(type)INFINITY;                                                         \
                places[j] = -1;                                                                    \
            }                                                                                      \
            plane(w, (const type *)(const void *)w->input + i * in, best, places);                 \
        }                                                                                          \
    }

MEET(meet_float32, float, int32_t)
MEET(meet_float64, double, int64_t)
PLANE(plane_float32, float, meet_float32)
PLANE(plane_float64, double, meet_float64)
PLANES(planes_float32, float, plane_float32)
PLANES(planes_float64, double, plane_float64)

static int read(const char *name, const opscope_argument *arguments, struct work *w)
{
    const opscope_tensor *input = arguments[0].as.tensor;
    int status = opscope__pooling_read(name, input->dims, opscope__sizes(input),
                                       (opscope_dtype)input->dtype, &w->pooling);
    if (status == OPSCOPE_OK) {
        status = opscope__window_read(name, &arguments[1], &arguments[2], &arguments[3],
                                      &arguments[4], w->window);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__pooling_slide(&w->pooling, w->window, arguments[5].as.integer != 0);
    }
    if (status == OPSCOPE_OK && w->pooling.size[0] > INT32_MAX / w->pooling.size[1]) {
        status = opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                     "%s: sizes %s: expected images of at most %d elements", name,
                                     opscope__shape_text(input).text, INT32_MAX);
    }
    return status;
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    struct work w;
    opscope_tensor *flat = NULL, *made = NULL, *places = NULL;
    int64_t sizes[4];
    int status = read(opscope__call_name(call), arguments, &w);
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(arguments[0].as.tensor, &flat);
    }
    if (status == OPSCOPE_OK) {
        opscope__pooling_sizes(&w.pooling, sizes);
        status = opscope__tensor_empty(w.pooling.dims, sizes, w.pooling.dtype, &made);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(w.pooling.dims, sizes, OPSCOPE_INT32, &places);
    }
    if (status == OPSCOPE_OK) {
        w.input = flat->data;
        w.output = made->data;
        w.places = (int32_t *)(void *)places->data;
        opscope__each_plane(&w.pooling, 4,
                            w.pooling.dtype == OPSCOPE_FLOAT32 ? planes_float32 : planes_float64,
                            &w);
        opscope__call_save(call, places);
        outputs[0] = opscope_tensor_retain(made);
    }
    opscope_tensor_release(flat);
    opscope_tensor_release(made);
    opscope_tensor_release(places);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *input = backward->inputs[0];
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f(&f, "max_pool2d_backward", opscope__T(grad),
                                            opscope__T(backward->saved[0]),
                                            opscope__L(opscope__sizes(input), input->dims)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(max_pool2d) = {
    .schema = "max_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, "
              "int[2] dilation=1, bool ceil_mode=False) -> Tensor",
    .doc = "The largest element, or NaN, of each window of kernel_size that moves by stride "
           "(default kernel_size) over each image of floats [batch, channels, height, width] or "
           "[channels, height, width]. Padding counts as less than every number. With ceil_mode "
           "the last window may extend past the padding.",
    .samples = "t(2, 3, 6, 5), 2\n"
               "t(3, 7, 8), [3, 2], [2, 1], [1, 0]\n"
               "t(1, 2, 8, 9), 3, 2, 1, ceil_mode=True\n"
               "t(2, 1, 9, 40), [2, 3], [1, 3], [1, 1], [3, 2]\n"
               "t(2, 2, 4, 37), 3, 1, 1\n"
               "t(0, 2, 4, 4), 2",
    .forward = forward,
    .backward = backward,
};
