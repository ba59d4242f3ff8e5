/* tensor/ops/nn/strips.h -- strips of a convolution's outputs, and the patches that they read.
 *
 * The inputs of the kernel form a matrix of patches: a row for each channel and position of the
 * kernel, a column for each output of the strip. Kernel rows that read every stride-th row of the
 * image from the same one on ("a phase") have the same patches, shifted by whole lines of outputs:
 * with a vertical stride of 1 the image is copied once for each kernel column, not once for each
 * position. Strips are small enough that patches stay in the cache.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_STRIPS_H
#define OPSCOPE_TENSOR_OPS_NN_STRIPS_H

#include <stdlib.h>

#include "tensor/ops/nn/convolution.h"
#include "tensor/ops/nn/tiles.h"

enum {
    OPSCOPE__PATCH_ELEMENTS = 49152, /* of a strip, to fit the second-level cache */
    OPSCOPE__PATCH_SLACK = 128,      /* elements after the last patch, which vectors read */
    OPSCOPE__TINY_IMAGE = 64,        /* outputs up to which a strip has several images */
    OPSCOPE__SMALL_IMAGE = 256,      /* the same if the weight is large */
    OPSCOPE__LARGE_WEIGHT = 1 << 18, /* elements that are slow to read for each image */
};

struct opscope__strips {
    const struct opscope__convolution *c;
    int64_t phases;        /* rows of patches for each channel and kernel column */
    int64_t line_step;     /* lines of outputs from a kernel row to the next one of its phase */
    int64_t halo;          /* lines of patches beyond those of outputs */
    int64_t rows, columns; /* of outputs in a strip: whole rows, or part of one */
    int64_t count;         /* of one image */
    int64_t images;        /* in a strip, with all their outputs, if images are small; else 1 */
    int64_t pitch;         /* elements from a row of patches to the next */
};

/* A strip of outputs of one group. */
struct opscope__strip {
    int64_t group, image, images; /* the first image, and their number */
    int64_t y, x, rows, columns;
};

static inline int64_t opscope__common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Strips for patches of `channels` channels at a time and at most `outputs` outputs, of at most
 * `images` images. `shares`: kernel rows of a phase share their patches. */
static inline struct opscope__strips opscope__strips_of(const struct opscope__convolution *c,
                                                        int64_t channels, int64_t outputs,
                                                        int64_t images, bool shares)
{
    const struct opscope__window *high = &c->window[0];
    int64_t divisor = opscope__common_divisor(high->dilation, high->stride);
    int64_t plane = c->out_size[0] * c->out_size[1];
    struct opscope__strips s = {.c = c, .phases = high->kernel, .images = 1};
    int64_t weight = c->in * high->kernel * c->window[1].kernel * c->out;
    if (plane > 0 && images > 1 &&
        (plane <= OPSCOPE__TINY_IMAGE ||
         (plane <= OPSCOPE__SMALL_IMAGE && weight > OPSCOPE__LARGE_WEIGHT))) {
        int64_t parts =
            (images * plane + 2 * OPSCOPE__SMALL_IMAGE - 1) / (2 * OPSCOPE__SMALL_IMAGE);
        s.images = (images + parts - 1) / parts;
    }
    if (shares && s.images == 1 && high->stride / divisor < high->kernel) {
        s.phases = high->stride / divisor;
        s.line_step = high->dilation / divisor;
    }
    s.halo = (high->kernel - 1) / s.phases * s.line_step;
    int64_t height = channels * s.phases * c->window[1].kernel;
    outputs = opscope__at_most(outputs, OPSCOPE__PATCH_ELEMENTS / (height > 0 ? height : 1));
    outputs = outputs > OPSCOPE__SMALL_IMAGE ? outputs : OPSCOPE__SMALL_IMAGE;
    s.columns = opscope__at_most(c->out_size[1], outputs);
    s.rows = outputs / (s.columns > 0 ? s.columns : 1) - s.halo;
    s.rows = s.rows > 4 ? s.rows : 4; /* otherwise the halo is most of the patches */
    s.rows = opscope__at_most(s.rows, c->out_size[0]);
    if (s.columns < c->out_size[1]) {
        s.rows = 1;
    }
    int64_t down = (c->out_size[0] + s.rows - 1) / s.rows;
    s.rows = (c->out_size[0] + down - 1) / down;
    s.count = down * ((c->out_size[1] + s.columns - 1) / s.columns);
    /* An odd number of cache lines, so that rows do not compete for the same part of the cache. */
    s.pitch = (s.images * (s.rows + s.halo) * s.columns + 15) / 16 * 16 | 16;
    return s;
}

/* The number of all strips. */
static inline int64_t opscope__strip_count(const struct opscope__strips *s)
{
    return (s->c->batch + s->images - 1) / s->images * s->c->groups * s->count;
}

/* Strip `index` of all. */
static inline struct opscope__strip opscope__strip_at(const struct opscope__strips *s,
                                                      int64_t index)
{
    const int64_t *size = s->c->out_size;
    int64_t across = (size[1] + s->columns - 1) / s->columns;
    int64_t slice = index / s->count;
    struct opscope__strip strip = {.group = slice % s->c->groups,
                                   .image = slice / s->c->groups * s->images};
    strip.y = index % s->count / across * s->rows;
    strip.x = index % s->count % across * s->columns;
    strip.images = opscope__at_most(s->images, s->c->batch - strip.image);
    strip.rows = opscope__at_most(s->rows, size[0] - strip.y);
    strip.columns = opscope__at_most(s->columns, size[1] - strip.x);
    return strip;
}

/* Memory that begins with a cache line, so that vectors do not lie across two; NULL if it runs out.
 */
static inline void *opscope__aligned_take(size_t bytes)
{
    void *memory;
    return posix_memalign(&memory, 64, bytes) == 0 ? memory : NULL;
}

/* Allocates memory for the patches of `channels` channels; NULL if memory runs out. */
static inline void *opscope__patches_take(const struct opscope__strips *s, int64_t channels)
{
    const struct opscope__convolution *c = s->c;
    size_t elements, bytes;
    if (__builtin_mul_overflow((size_t)(channels * s->phases * c->window[1].kernel),
                               (size_t)s->pitch, &elements) ||
        __builtin_mul_overflow(elements + OPSCOPE__PATCH_SLACK, opscope_dtype_bytes(c->dtype),
                               &bytes)) {
        return NULL;
    }
    return opscope__aligned_take(bytes);
}

/* The offsets of the patches of `channels` channels: [channel, position of the kernel]; to be
 * freed. NULL if memory runs out. */
static inline int64_t *opscope__patch_offsets(const struct opscope__strips *s, int64_t channels)
{
    int64_t across = s->c->window[1].kernel, area = s->c->window[0].kernel * across;
    int64_t *offsets = malloc((size_t)(channels * area) * sizeof *offsets + 1);
    for (int64_t i = 0; i < channels * area && offsets != NULL; i++) {
        int64_t ky = i % area / across, kx = i % across;
        int64_t row = (i / area * s->phases + ky % s->phases) * across + kx;
        offsets[i] = row * s->pitch + ky / s->phases * s->line_step * s->columns;
    }
    return offsets;
}

/* The number of channels in each block of a group's, if a block has about `depth` patches. */
static inline int64_t opscope__channels_of_block(const struct opscope__convolution *c,
                                                 int64_t depth)
{
    int64_t area = c->window[0].kernel * c->window[1].kernel;
    int64_t blocks = opscope__at_most((c->in * area + depth - 1) / depth, c->in);
    return blocks > 0 ? (c->in + blocks - 1) / blocks : 1;
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

/* Fills lines of patches from rows of the image: row `y` and every `step`-th after it; rows outside
 * of the image are padding. Of each line's elements, which begin at `x`, [begin, end) lie inside.
 */
#define OPSCOPE__LINES(name, type)                                                                 \
    static inline void opscope__clear_columns_##name(type *line, int64_t first, int64_t last,      \
                                                     int64_t pitch, int64_t begin, int64_t end)    \
    {                                                                                              \
        for (int64_t j = begin; j < end; j++) {                                                    \
            for (int64_t i = first; i < last; i++) {                                               \
                line[i * pitch + j] = 0;                                                           \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static inline void opscope__fill_lines_##name(                                                 \
        const struct opscope__convolution *c, type *line, const type *plane, int64_t y,            \
        int64_t lines, int64_t x, int64_t begin, int64_t end, int64_t columns, int64_t pitch)      \
    {                                                                                              \
        int64_t step = c->window[0].stride, stride = c->window[1].stride;                          \
        int64_t first = opscope__first_at(-y, step, lines);                                        \
        int64_t last = opscope__first_at(c->size[0] - y, step, lines);                             \
        last = last > first ? last : first;                                                        \
        opscope__clear_##name(line, first *pitch);                                                 \
        const type *from = plane + (y + first * step) * c->size[1] + x + begin * stride;           \
        int64_t row_step = step * c->size[1], count = end - begin;                                 \
        type *to = line + first * pitch;                                                           \
        if (stride == 2) {                                                                         \
            opscope__copy_lines_halves_##name(to + begin, pitch, from, row_step, last - first,     \
                                              count);                                              \
        }                                                                                          \
        for (int64_t i = first; i < last && stride == 1; i++, to += pitch, from += row_step) {     \
            opscope__copy_##name(to + begin, from, count);                                         \
        }                                                                                          \
        for (int64_t i = first; i < last && stride > 2; i++, to += pitch, from += row_step) {      \
            for (int64_t j = 0; j < count; j++) {                                                  \
                to[begin + j] = from[j * stride];                                                  \
            }                                                                                      \
        }                                                                                          \
        opscope__clear_columns_##name(line, first, last, pitch, 0, begin);                         \
        opscope__clear_columns_##name(line, first, last, pitch, end, columns);                     \
        opscope__clear_##name(line + last * pitch, (lines - last) * pitch);                        \
    }                                                                                              \
    /* Adds lines to the rows that they were filled from. */                                       \
    static inline void opscope__spill_lines_##name(                                                \
        const struct opscope__convolution *c, type *line, type *plane, int64_t y, int64_t lines,   \
        int64_t x, int64_t begin, int64_t end, int64_t columns, int64_t pitch)                     \
    {                                                                                              \
        (void)columns;                                                                             \
        int64_t stride = c->window[1].stride;                                                      \
        for (int64_t i = 0; i < lines; i++, y += c->window[0].stride) {                            \
            type *row = plane + y * c->size[1] + x;                                                \
            for (int64_t j = begin; j < end && y >= 0 && y < c->size[0]; j++) {                    \
                row[j * stride] += line[i * pitch + j];                                            \
            }                                                                                      \
        }                                                                                          \
    }

/* Fills lines with rows of the image from `y` on, moved by some columns: at once, with elements of
 * the rows before and after, which are then set to 0. `x`, `begin` and `end` as before. */
#define OPSCOPE__FILL_ROWS(name, type)                                                             \
    static inline void opscope__fill_rows_##name(type *line, const type *plane, int64_t y,         \
                                                 int64_t lines, int64_t height, int64_t width,     \
                                                 int64_t x, int64_t begin, int64_t end)            \
    {                                                                                              \
        int64_t first = y < 0 ? opscope__at_most(-y, lines) : 0;                                   \
        int64_t last = opscope__at_most(lines, height - y);                                        \
        if (begin >= end || last <= first) {                                                       \
            opscope__clear_##name(line, lines *width);                                             \
            return;                                                                                \
        }                                                                                          \
        opscope__clear_##name(line, first *width);                                                 \
        opscope__copy_##name(line + first * width + begin,                                         \
                             plane + (y + first) * width + x + begin,                              \
                             (last - first - 1) * width + end - begin);                            \
        opscope__clear_##name(line + last * width, (lines - last) * width);                        \
        opscope__clear_columns_##name(line, first, last, width, 0, begin);                         \
        opscope__clear_columns_##name(line, first, last, width, end, width);                       \
    }

/* Processes all lines of a strip's patches for that many channels; `image` is the first of them in
 * the tensor's first image. */
#define OPSCOPE__EACH_LINE(verb, name, type)                                                       \
    static __attribute__((noinline, unused)) void opscope__##verb##_##name(                        \
        const struct opscope__strips *s, type *image, const struct opscope__strip *strip,          \
        int64_t channels, type *patches)                                                           \
    {                                                                                              \
        const struct opscope__convolution *c = s->c;                                               \
        const struct opscope__window *high = &c->window[0], *wide = &c->window[1];                 \
        int64_t lines = strip->rows + s->halo, plane_size = c->size[0] * c->size[1];               \
        bool is_moved = high->stride == 1 && wide->stride == 1 && s->columns == c->size[1];        \
        image += strip->image * c->groups * c->in * plane_size;                                    \
        for (int64_t kx = 0; kx < wide->kernel; kx++) {                                            \
            int64_t begin, end, x = opscope__line_span(c, strip, kx, &begin, &end);                \
            for (int64_t channel = 0; channel < channels; channel++) {                             \
                int64_t top = strip->y * high->stride - high->padding;                             \
                for (int64_t ky = 0; ky < s->phases; ky++, top += high->dilation) {                \
                    type *line =                                                                   \
                        patches + ((channel * s->phases + ky) * wide->kernel + kx) * s->pitch;     \
                    type *plane = image + channel * plane_size;                                    \
                    for (int64_t n = 0; n < strip->images; n++) {                                  \
                        if (is_moved && opscope__##verb##_is_copy) {                               \
                            opscope__fill_rows_##name(line, plane, top, lines, c->size[0],         \
                                                      c->size[1], x, begin, end);                  \
                        } else {                                                                   \
                            opscope__##verb##_lines_##name(c, line, plane, top, lines, x, begin,   \
                                                           end, strip->columns, s->columns);       \
                        }                                                                          \
                        line += lines * s->columns;                                                \
                        plane += c->groups * c->in * plane_size;                                   \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

enum { opscope__fill_is_copy = 1, opscope__spill_is_copy = 0 };

OPSCOPE__LINES(float32, float)
OPSCOPE__LINES(float64, double)
OPSCOPE__FILL_ROWS(float32, float)
OPSCOPE__FILL_ROWS(float64, double)
OPSCOPE__EACH_LINE(fill, float32, float)
OPSCOPE__EACH_LINE(fill, float64, double)
OPSCOPE__EACH_LINE(spill, float32, float)
OPSCOPE__EACH_LINE(spill, float64, double)

#endif
