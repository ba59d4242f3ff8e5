/* tensor/ops/nn/convolution.h -- a convolution as matrix products over strips of the output.
 *
 * The inputs of the kernel form a matrix of patches: a row for each channel and kernel position, a
 * column for each output. With a vertical stride of 1 only the kernel's columns have rows of their
 * own: the patches of the next kernel row are the same matrix, shifted by one line of outputs. A
 * convolution is then one product for each kernel row ("turn"), and the image is copied once for
 * each kernel column. The weight must then be arranged by kernel row, which does not pay off for
 * few outputs. Otherwise each position has its row, and there is one turn. A kernel with a single
 * position needs no copy. Strips are small enough that patches stay in the cache and that a
 * BLAS multiplies them without packing.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_CONVOLUTION_H
#define OPSCOPE_TENSOR_OPS_NN_CONVOLUTION_H

#include <stdlib.h>
#include <string.h>

#include "tensor/kernels/blas.h"
#include "tensor/kernels/convert.h"
#include "tensor/kernels/parallel.h"
#include "tensor/ops/nn/window.h"

enum {
    OPSCOPE__PRODUCT_WORK = 1000000, /* multiplications up to which OpenBLAS does not pack */
    OPSCOPE__PATCH_ELEMENTS = 65536, /* of a strip, to fit the second-level cache */
    OPSCOPE__STRIP_LEAST = 256,      /* number of outputs from which packing pays off */
    OPSCOPE__ARRANGE_LEAST = 16,     /* outputs for each channel from which arranging pays off */
};

struct opscope__convolution {
    const char *name;
    opscope_dtype dtype;
    int dims; /* of input and output: 3 without a batch, else 4 */
    int64_t batch, groups;
    int64_t in, out; /* channels of one group */
    int64_t size[2], out_size[2];
    struct opscope__window window[2];
    int64_t turns;         /* products per strip */
    int64_t depth;         /* rows of patches per channel */
    bool is_bare;          /* the image can be used directly as its patches */
    int64_t rows, columns; /* of outputs in a strip: whole rows, or part of one */
    int64_t strip_count;   /* of one image */
};

/* A strip of outputs, and the number of its lines of patches. */
struct opscope__strip {
    int64_t y, x, rows, columns, lines;
};

static inline int64_t opscope__at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

/* The sizes and dtype of an existing or future tensor. */
struct opscope__outline {
    opscope_dtype dtype;
    int dims;
    const int64_t *sizes;
};

static inline struct opscope__outline opscope__outline_of(const opscope_tensor *tensor)
{
    return (struct opscope__outline){(opscope_dtype)tensor->dtype, tensor->dims,
                                     opscope__sizes(tensor)};
}

/* From a list of sizes; a longer list is cut. */
static inline struct opscope__outline opscope__outline_from(const opscope_argument *list,
                                                            opscope_dtype dtype)
{
    return (struct opscope__outline){dtype, (int)opscope__at_most(list->count, OPSCOPE_DIM_LIMIT),
                                     list->as.integers};
}

static inline bool opscope__fit_together(const struct opscope__outline *input,
                                         const struct opscope__outline *weight, int64_t groups)
{
    if ((input->dims != 3 && input->dims != 4) || weight->dims != 4 ||
        input->dtype != weight->dtype ||
        (input->dtype != OPSCOPE_FLOAT32 && input->dtype != OPSCOPE_FLOAT64) || groups < 1) {
        return false;
    }
    int64_t channels = input->sizes[input->dims - 3];
    return channels >= 0 && weight->sizes[0] >= 0 && channels % groups == 0 &&
           channels / groups == weight->sizes[1] && weight->sizes[0] % groups == 0;
}

static inline void opscope__convolution_plan(struct opscope__convolution *c)
{
    const struct opscope__window *high = &c->window[0], *wide = &c->window[1];
    c->is_bare = high->kernel == 1 && wide->kernel == 1 && high->stride == 1 && wide->stride == 1 &&
                 high->padding == 0 && wide->padding == 0;
    bool is_arranged = high->stride == 1 && c->batch * c->out_size[0] * c->out_size[1] >=
                                                OPSCOPE__ARRANGE_LEAST * c->out;
    for (c->turns = is_arranged ? high->kernel : 1;; c->turns = 1) {
        c->depth = wide->kernel * (high->kernel / c->turns);
        int64_t height = c->in * c->depth > 0 ? c->in * c->depth : 1;
        int64_t outputs = OPSCOPE__PRODUCT_WORK / (height * (c->out > 0 ? c->out : 1));
        outputs = opscope__at_most(outputs, OPSCOPE__PATCH_ELEMENTS / height);
        outputs = outputs > OPSCOPE__STRIP_LEAST ? outputs : OPSCOPE__STRIP_LEAST;
        c->rows = opscope__at_most(outputs / c->out_size[1], c->out_size[0]);
        c->rows = c->rows > 0 ? c->rows : 1;
        c->columns = opscope__at_most(c->out_size[1], outputs);
        /* A kernel much higher than the strip would copy many lines for few outputs. */
        if (c->turns == 1 || (high->kernel - 1) * high->dilation <= 2 * c->rows + 8) {
            break;
        }
    }
    c->strip_count = c->columns == c->out_size[1]
                         ? (c->out_size[0] + c->rows - 1) / c->rows
                         : c->out_size[0] * ((c->out_size[1] + c->columns - 1) / c->columns);
}

/* `settings` are stride, padding, dilation and groups. */
static inline int opscope__convolution_read(const char *name, struct opscope__outline input,
                                            struct opscope__outline weight,
                                            const opscope_argument *settings,
                                            struct opscope__convolution *out)
{
    int64_t groups = settings[3].as.integer,
            weight_bytes = (int64_t)opscope_dtype_bytes(weight.dtype);
    if (!opscope__fit_together(&input, &weight, groups)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: input %s of sizes %s, weight %s of sizes %s, groups %lld: expected floats of one dtype, "
            "[batch, in, height, width] or [in, height, width], [out, in / groups, kernel height, kernel "
            "width], and groups that divide in and out",
            name, opscope_dtype_name(input.dtype),
            opscope__sizes_text(input.dims, input.sizes).text, opscope_dtype_name(weight.dtype),
            opscope__sizes_text(weight.dims, weight.sizes).text, (long long)groups);
    }
    struct opscope__convolution c = {.name = name, .dtype = input.dtype, .dims = input.dims};
    opscope_argument kernel = opscope__L(weight.sizes + 2, 2);
    int status =
        opscope__window_read(name, &kernel, &settings[0], &settings[1], &settings[2], c.window);
    for (int i = 0; i < 2 && status == OPSCOPE_OK; i++) {
        c.size[i] = input.sizes[input.dims - 2 + i];
        status = opscope__window_count(name, &c.window[i], c.size[i], false, &c.out_size[i]);
    }
    for (int i = 0; i < 4 && status == OPSCOPE_OK; i++) {
        if (__builtin_mul_overflow(weight_bytes, weight.sizes[i], &weight_bytes)) {
            status =
                opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: a weight of sizes %s exceeds memory",
                                    name, opscope__sizes_text(weight.dims, weight.sizes).text);
        }
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    c.batch = input.dims == 4 ? input.sizes[0] : 1;
    c.groups = groups;
    c.in = weight.sizes[1];
    c.out = weight.sizes[0] / groups;
    opscope__convolution_plan(&c);
    *out = c;
    return OPSCOPE_OK;
}

/* The number of strips that make waking a thread worthwhile. */
static inline int64_t opscope__strips_worth_a_thread(const struct opscope__convolution *c)
{
    const int64_t multiplications = 16; /* in the time of one memory-bound addition */
    int64_t work =
        c->in * c->depth * c->turns * (c->out + 1) * c->rows * c->columns / multiplications;
    return OPSCOPE__GRAIN / (work + 1) + 1;
}

/* Reports a part's failure on the calling thread. */
static inline int opscope__convolution_done(const struct opscope__convolution *c, int status)
{
    return status == OPSCOPE_OK
               ? status
               : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY,
                                     "%s: out of memory for a strip of patches", c->name);
}

/* The output's sizes, as many as dims. */
static inline void opscope__convolution_sizes(const struct opscope__convolution *c, int64_t *sizes)
{
    const int64_t all[] = {c->batch, c->groups * c->out, c->out_size[0], c->out_size[1]};
    memcpy(sizes, all + 4 - c->dims, (size_t)c->dims * sizeof *sizes);
}

/* Fails unless the gradient has the output's dtype and sizes. */
static inline int opscope__check_grad_output(const struct opscope__convolution *c,
                                             const opscope_tensor *grad)
{
    int64_t sizes[4];
    opscope__convolution_sizes(c, sizes);
    if (grad->dims != c->dims || grad->dtype != c->dtype ||
        memcmp(opscope__sizes(grad), sizes, (size_t)c->dims * sizeof *sizes) != 0) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: grad_output is %s of sizes %s, the convolution gives %s of sizes %s", c->name,
            opscope_dtype_name((opscope_dtype)grad->dtype), opscope__shape_text(grad).text,
            opscope_dtype_name(c->dtype), opscope__sizes_text(c->dims, sizes).text);
    }
    return OPSCOPE_OK;
}

static inline struct opscope__strip opscope__strip_at(const struct opscope__convolution *c,
                                                      int64_t index)
{
    struct opscope__strip strip = {index * c->rows, 0, c->rows, c->columns, 0};
    if (c->columns < c->out_size[1]) {
        int64_t across = (c->out_size[1] + c->columns - 1) / c->columns;
        strip.y = index / across;
        strip.x = index % across * c->columns;
        strip.columns = opscope__at_most(c->columns, c->out_size[1] - strip.x);
    }
    strip.rows = opscope__at_most(c->rows, c->out_size[0] - strip.y);
    strip.lines = strip.rows + (c->turns - 1) * c->window[0].dilation;
    return strip;
}

/* Allocates memory for the patches of `channels` channels; NULL if memory runs out. */
static inline void *opscope__patches_take(const struct opscope__convolution *c, int64_t channels)
{
    struct opscope__strip strip = opscope__strip_at(c, 0);
    size_t bytes;
    if (c->is_bare) {
        return malloc(1);
    }
    if (__builtin_mul_overflow((size_t)(channels * c->depth), (size_t)(strip.lines * strip.columns),
                               &bytes) ||
        __builtin_mul_overflow(bytes, opscope_dtype_bytes(c->dtype), &bytes)) {
        return NULL;
    }
    return malloc(bytes > 0 ? bytes : 1);
}

/* Offset from one turn's patches to the next one's, in elements. */
static inline int64_t opscope__turn_shift(const struct opscope__convolution *c,
                                          const struct opscope__strip *strip)
{
    return c->window[0].dilation * strip->columns;
}

/* The part of each line of patches, at column `kx` of the kernel, that lies within the image:
 * [*begin, *end). Returns the image's element for line 0, column 0, which may lie outside. */
static inline int64_t opscope__line_span(const struct opscope__convolution *c,
                                         const struct opscope__strip *strip, int64_t kx,
                                         int64_t *begin, int64_t *end)
{
    const struct opscope__window *wide = &c->window[1];
    int64_t x = strip->x * wide->stride + kx * wide->dilation - wide->padding;
    *begin = opscope__first_at(-x, wide->stride, strip->columns);
    *end = opscope__first_at(c->size[1] - x, wide->stride, strip->columns);
    return x;
}

/* Fills one line of patches from a row of the image (NULL: padding); of the elements from `x` on,
 * [begin, end) lie inside. Also the backward, which adds. */
#define OPSCOPE__LINES(name, type)                                                                 \
    static inline void opscope__fill_line_##name(type *line, const type *row, int64_t x,           \
                                                 int64_t begin, int64_t end, int64_t stride,       \
                                                 int64_t columns)                                  \
    {                                                                                              \
        if (row == NULL) {                                                                         \
            begin = end = 0;                                                                       \
        }                                                                                          \
        for (int64_t j = 0; j < begin; j++) {                                                      \
            line[j] = 0;                                                                           \
        }                                                                                          \
        if (stride == 1) {                                                                         \
            for (int64_t j = begin; j < end; j++) {                                                \
                line[j] = row[x + j];                                                              \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t j = begin; j < end; j++) {                                                \
                line[j] = row[x + j * stride];                                                     \
            }                                                                                      \
        }                                                                                          \
        for (int64_t j = end; j < columns; j++) {                                                  \
            line[j] = 0;                                                                           \
        }                                                                                          \
    }                                                                                              \
    static inline void opscope__spill_line_##name(type *line, type *row, int64_t x, int64_t begin, \
                                                  int64_t end, int64_t stride, int64_t columns)    \
    {                                                                                              \
        (void)columns;                                                                             \
        for (int64_t j = begin; j < end && row != NULL; j++) {                                     \
            row[x + j * stride] += line[j];                                                        \
        }                                                                                          \
    }

/* Processes all lines of a strip's patches for that many channels, the first of them at `image`. */
#define OPSCOPE__EACH_LINE(verb, name, type)                                                       \
    static inline void opscope__##verb##_##name(const struct opscope__convolution *c, type *image, \
                                                const struct opscope__strip *strip,                \
                                                int64_t channels, type *line)                      \
    {                                                                                              \
        const struct opscope__window *high = &c->window[0], *wide = &c->window[1];                 \
        for (int64_t channel = 0; channel < channels; channel++) {                                 \
            type *plane = image + channel * c->size[0] * c->size[1];                               \
            for (int64_t place = 0; place < c->depth; place++) {                                   \
                int64_t ky = place / wide->kernel, begin, end;                                     \
                int64_t x = opscope__line_span(c, strip, place % wide->kernel, &begin, &end);      \
                int64_t y = strip->y * high->stride + ky * high->dilation - high->padding;         \
                for (int64_t i = 0; i < strip->lines; i++, y += high->stride) {                    \
                    type *row = y >= 0 && y < c->size[0] ? plane + y * c->size[1] : NULL;          \
                    opscope__##verb##_line_##name(line, row, x, begin, end, wide->stride,          \
                                                  strip->columns);                                 \
                    line += strip->columns;                                                        \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

OPSCOPE__LINES(float32, float)
OPSCOPE__LINES(float64, double)
OPSCOPE__EACH_LINE(fill, float32, float)
OPSCOPE__EACH_LINE(fill, float64, double)
OPSCOPE__EACH_LINE(spill, float32, float)
OPSCOPE__EACH_LINE(spill, float64, double)

/* The strip's patches for `channels` channels, the first of them at `image`: copied to `room`, or
 * in place if possible. */
static inline struct opscope__matrix opscope__patches(const struct opscope__convolution *c,
                                                      char *image,
                                                      const struct opscope__strip *strip,
                                                      int64_t channels, char *room)
{
    int64_t stride = strip->lines * strip->columns;
    if (c->is_bare) {
        stride = c->size[0] * c->size[1];
        room = image + (strip->y * c->size[1] + strip->x) * (int64_t)opscope_dtype_bytes(c->dtype);
    } else if (c->dtype == OPSCOPE_FLOAT32) {
        opscope__fill_float32(c, (float *)(void *)image, strip, channels, (float *)(void *)room);
    } else {
        opscope__fill_float64(c, (double *)(void *)image, strip, channels, (double *)(void *)room);
    }
    return (struct opscope__matrix){room, channels * c->depth, strip->rows * strip->columns, stride,
                                    1};
}

/* The weight in the order of the products: for each group and turn [out, channel, positions in a
 * turn]. A new reference. */
static inline int opscope__arranged_weight(const struct opscope__convolution *c,
                                           opscope_tensor *weight, opscope_tensor **out)
{
    opscope_tensor *flat = NULL, *view = NULL;
    int status = opscope__contiguous(weight, &flat);
    if (status != OPSCOPE_OK || c->turns == 1) {
        *out = flat;
        return status;
    }
    int64_t line = c->depth, matrix = c->in * c->turns * line;
    const int64_t sizes[] = {c->groups, c->turns, c->out, c->in, line};
    const int64_t strides[] = {c->out * matrix, line, matrix, c->turns * line, 1};
    status = opscope__tensor_view(flat, 5, sizes, strides, 0, &view);
    if (status == OPSCOPE_OK) {
        status = opscope__clone(view, out);
    }
    opscope_tensor_release(view);
    opscope_tensor_release(flat);
    return status;
}

#endif
