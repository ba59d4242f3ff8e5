/* tensor/ops/nn/image_phases.h -- convolutions with a stride, if each group has one channel.
 *
 * The image is copied once, its rows and columns sorted by their remainders by the stride: its
 * phases. The elements of one phase that an element of the kernel multiplies are then side by side.
 * Patches would be as many copies as the kernel has elements.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_IMAGE_PHASES_H
#define OPSCOPE_TENSOR_OPS_NN_IMAGE_PHASES_H

#include "tensor/ops/nn/direct.h"

enum {
    OPSCOPE__MOST_IMAGE_PHASES = 16,   /* together */
    OPSCOPE__IMAGE_PHASES_MARGINS = 8, /* times the elements of images and outputs, at most */
    OPSCOPE__OUTPUTS_AT_ONCE = 2048,   /* or a row */
    OPSCOPE__FEW_KERNELS = 2,          /* of a group; tiles of more are faster with patches */
};

struct opscope__image_phases {
    const struct opscope__convolution *c;
    const char *input, *weight, *bias; /* contiguous; bias NULL: none */
    char *output;
    int64_t length[2]; /* rows and columns of a phase */
    int64_t rows;      /* of outputs that are computed together */
    int64_t *offsets;  /* of each element of the kernel: where output 0 finds its factor */
    int status; /* any part that fails writes it, relaxed; read after the parts have joined */
};

static inline int64_t opscope__image_phase_length(const struct opscope__convolution *c, int dim)
{
    const struct opscope__window *w = &c->window[dim];
    return c->out_size[dim] + (w->kernel - 1) * w->dilation / w->stride;
}

/* Whether it is faster: there are few kernels and few phases, and their margins need little memory.
 */
static inline bool opscope__image_phases_fit(const struct opscope__convolution *c)
{
    int64_t down = c->window[0].stride, across = c->window[1].stride;
    if (c->in != 1 || c->out > OPSCOPE__FEW_KERNELS || (down == 1 && across == 1) ||
        down > OPSCOPE__MOST_IMAGE_PHASES || down * across > OPSCOPE__MOST_IMAGE_PHASES) {
        return false;
    }
    int64_t elements = c->size[0] * c->size[1] + c->out_size[0] * c->out_size[1];
    return opscope__image_phase_length(c, 0) <= OPSCOPE__IMAGE_PHASES_MARGINS * elements /
                                                    (down * across) /
                                                    opscope__image_phase_length(c, 1);
}

#define OPSCOPE__IMAGE_PHASES(name, type)                                                          \
    /* Copies every `stride`-th element. */                                                        \
    static void opscope__copy_phase_##name(type *to, const type *from, int64_t stride,             \
                                           int64_t count)                                          \
    {                                                                                              \
        if (stride == 2) {                                                                         \
            opscope__copy_halves_##name(to, from, count);                                          \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            to[i] = from[i * stride];                                                              \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Sorts one image by phases, between their margins of zeros. */                               \
    static void opscope__sort_phases_##name(const struct opscope__image_phases *p,                 \
                                            const type *image, type *to)                           \
    {                                                                                              \
        const struct opscope__convolution *c = p->c;                                               \
        const struct opscope__window *high = &c->window[0], *wide = &c->window[1];                 \
        int64_t plane = p->length[0] * p->length[1];                                               \
        for (int64_t y = 0; y < c->size[0]; y++) {                                                 \
            int64_t phase = (y + high->padding) % high->stride;                                    \
            int64_t row = (y + high->padding) / high->stride;                                      \
            if (row >= p->length[0]) {                                                             \
                break;                                                                             \
            }                                                                                      \
            for (int64_t i = 0; i < wide->stride && i < c->size[1]; i++) {                         \
                int64_t at = (i + wide->padding) / wide->stride;                                   \
                int64_t count = opscope__at_most(                                                  \
                    (c->size[1] - i + wide->stride - 1) / wide->stride, p->length[1] - at);        \
                type *start = to + row * p->length[1] + at +                                       \
                              (phase * wide->stride + (i + wide->padding) % wide->stride) * plane; \
                if (count > 0) {                                                                   \
                    opscope__copy_phase_##name(start, image + y * c->size[1] + i, wide->stride,    \
                                               count);                                             \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* The outputs of one kernel. */                                                               \
    static void opscope__outputs_by_phases_##name(const struct opscope__image_phases *p,           \
                                                  const type *phases, const type *weight,          \
                                                  const type *bias, type *sums, type *output)      \
    {                                                                                              \
        enum { LANES = OPSCOPE__VECTOR_BYTES / sizeof(type) };                                     \
        const struct opscope__convolution *c = p->c;                                               \
        int64_t area = c->window[0].kernel * c->window[1].kernel, columns = c->out_size[1];        \
        for (int64_t y = 0, rows; y < c->out_size[0]; y += rows) {                                 \
            rows = opscope__at_most(p->rows, c->out_size[0] - y);                                  \
            int64_t count = (rows - 1) * p->length[1] + columns;                                   \
            for (int64_t i = 0, some; i < count; i += some) {                                      \
                int64_t left = (count - i + LANES - 1) / LANES;                                    \
                some = (left > 4 ? OPSCOPE__WIDE_VECTORS : left > 2 ? 4 : 2) * LANES;              \
                opscope__outputs_of_##name(weight, phases + y * p->length[1] + i, p->offsets,      \
                                           area, sums + i, 0, bias, false, some, 1, 1);            \
            }                                                                                      \
            for (int64_t i = 0; i < rows; i++) {                                                   \
                opscope__copy_##name(output + (y + i) * columns, sums + i * p->length[1],          \
                                     columns);                                                     \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Units are the groups of all images. */                                                      \
    static void opscope__image_phases_part_##name(int64_t begin, int64_t end, void *arg)           \
    {                                                                                              \
        struct opscope__image_phases *p = arg;                                                     \
        const struct opscope__convolution *c = p->c;                                               \
        int64_t area = c->window[0].kernel * c->window[1].kernel;                                  \
        int64_t plane = c->size[0] * c->size[1], outputs = c->out_size[0] * c->out_size[1];        \
        int64_t phases = c->window[0].stride * c->window[1].stride * p->length[0] * p->length[1] + \
                         OPSCOPE__PATCH_SLACK;                                                     \
        int64_t sums = p->rows * p->length[1] + OPSCOPE__PATCH_SLACK;                              \
        const type *weight = (const type *)(const void *)p->weight;                                \
        const type *bias = (const type *)(const void *)p->bias;                                    \
        type *room = opscope__aligned_take((size_t)(phases + sums) * sizeof *room);                \
        if (room == NULL) {                                                                        \
            opscope__store_relaxed(&p->status, OPSCOPE_ERR_NO_MEMORY);                             \
            return;                                                                                \
        }                                                                                          \
        memset(room, 0, (size_t)(phases + sums) * sizeof *room); /* the margins stay 0 */          \
        for (; begin < end; begin++) {                                                             \
            opscope__sort_phases_##name(p, (const type *)(const void *)p->input + begin * plane,   \
                                        room);                                                     \
            for (int64_t o = 0; o < c->out; o++) {                                                 \
                int64_t kernel = begin % c->groups * c->out + o;                                   \
                opscope__outputs_by_phases_##name(                                                 \
                    p, room, weight + kernel * area, bias != NULL ? bias + kernel : NULL,          \
                    room + phases, (type *)(void *)p->output + (begin * c->out + o) * outputs);    \
            }                                                                                      \
        }                                                                                          \
        free(room);                                                                                \
    }

OPSCOPE__IMAGE_PHASES(float32, float)
OPSCOPE__IMAGE_PHASES(float64, double)

/* All outputs, of which there is one, if opscope__image_phases_fit. */
static int opscope__convolve_phases(const struct opscope__convolution *c, const char *input,
                                    const char *weight, const char *bias, char *output)
{
    struct opscope__image_phases p = {
        .c = c, .input = input, .weight = weight, .bias = bias, .output = output};
    const struct opscope__window *high = &c->window[0], *wide = &c->window[1];
    p.length[0] = opscope__image_phase_length(c, 0);
    p.length[1] = opscope__image_phase_length(c, 1);
    p.rows = opscope__at_most(OPSCOPE__OUTPUTS_AT_ONCE / p.length[1] + 1, c->out_size[0]);
    int64_t area = high->kernel * wide->kernel;
    p.offsets = malloc((size_t)area * sizeof *p.offsets);
    for (int64_t i = 0; i < area && p.offsets != NULL; i++) {
        int64_t y = i / wide->kernel * high->dilation, x = i % wide->kernel * wide->dilation;
        int64_t phase = y % high->stride * wide->stride + x % wide->stride;
        p.offsets[i] = (phase * p.length[0] + y / high->stride) * p.length[1] + x / wide->stride;
    }
    p.status = p.offsets != NULL ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
    if (p.status == OPSCOPE_OK) {
        int64_t work = c->size[0] * c->size[1] + c->out * c->out_size[0] * c->out_size[1];
        opscope__parallel(c->batch * c->groups, OPSCOPE__GRAIN / (work + 1) + 1,
                          c->dtype == OPSCOPE_FLOAT32 ? opscope__image_phases_part_float32
                                                      : opscope__image_phases_part_float64,
                          &p);
    }
    free(p.offsets);
    int status = opscope__load_relaxed(&p.status);
    return status == OPSCOPE_OK
               ? status
               : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY,
                                     "%s: out of memory for an image's phases", c->name);
}

#endif
