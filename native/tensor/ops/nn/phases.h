/* tensor/ops/nn/phases.h -- the gradient of the images of a convolution with a stride, if each
 * group has one channel of them.
 *
 * Image rows whose positions have the same remainder by the stride are a phase: the same rows of
 * the kernel contribute to all of them. So the elements of one phase of rows and one of columns are
 * a convolution of stride 1, of the output's gradient by a part of the kernel, and no product is
 * with a zero between two gradients.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_PHASES_H
#define OPSCOPE_TENSOR_OPS_NN_PHASES_H

#include "tensor/ops/nn/direct.h"

enum {
    OPSCOPE__MOST_PHASES = 16,  /* together */
    OPSCOPE__PHASE_SUMS = 2048, /* elements of a phase that are computed together, or a row */
    OPSCOPE__MOST_MARGINS = 8,  /* times the elements of images and gradients: see phases_fit */
};

/* Along one dimension. Image element `at` has the phase (at + padding) % stride and the position
 * (at + padding) / stride - first. */
struct opscope__phase_axis {
    int64_t stride, first, positions;
    int64_t lead;   /* the phase of image element 0 */
    int64_t reach;  /* gradients before a position's own that contribute to it */
    int64_t length; /* of the gradients with their margins */
};

struct opscope__phases {
    const struct opscope__convolution *c;
    struct opscope__phase_axis axis[2];
    const char *grad, *weight; /* contiguous */
    char *input;               /* the result */
    int64_t area, plane;       /* elements of a kernel; of one channel's gradients with margins */
    int64_t rows, room;        /* of the sums that are computed together; elements of a phase */
    int64_t *taps;             /* of each phase: indices of the elements of a group's kernels */
    int64_t *offsets;          /* of each tap: where its first gradient is */
    int64_t ends[OPSCOPE__MOST_PHASES]; /* the end of each phase's taps */
    int status; /* any part that fails writes it, relaxed; read after the parts have joined */
};

static inline struct opscope__phase_axis opscope__phase_axis_of(const struct opscope__window *w,
                                                                int64_t size)
{
    struct opscope__phase_axis axis = {.stride = w->stride, .first = w->padding / w->stride};
    axis.positions = (size - 1 + w->padding) / w->stride - axis.first + 1;
    axis.lead = w->padding % w->stride;
    axis.reach = (w->kernel - 1) * w->dilation / w->stride;
    axis.length = axis.positions + axis.reach;
    return axis;
}

/* Whether there are few phases, and the gradients' margins need little memory. The images have an
 * element. */
static inline bool opscope__phases_fit(const struct opscope__convolution *c)
{
    struct opscope__phase_axis high = opscope__phase_axis_of(&c->window[0], c->size[0]);
    struct opscope__phase_axis wide = opscope__phase_axis_of(&c->window[1], c->size[1]);
    int64_t elements = c->size[0] * c->size[1] + c->out_size[0] * c->out_size[1];
    return c->in == 1 && high.stride <= OPSCOPE__MOST_PHASES &&
           high.stride * wide.stride <= OPSCOPE__MOST_PHASES &&
           high.length <= OPSCOPE__MOST_MARGINS * elements / wide.length;
}

/* The taps, phase by phase. Both lists have room for all elements of a group's kernels. */
static inline void opscope__phases_find_taps(struct opscope__phases *p)
{
    const struct opscope__convolution *c = p->c;
    const struct opscope__phase_axis *high = &p->axis[0], *wide = &p->axis[1];
    int64_t found = 0, across = c->window[1].kernel;
    for (int64_t phase = 0; phase < high->stride * wide->stride; phase++) {
        for (int64_t i = 0; i < c->out * p->area; i++) {
            int64_t y = i % p->area / across * c->window[0].dilation;
            int64_t x = i % across * c->window[1].dilation;
            if (y % high->stride == phase / wide->stride &&
                x % wide->stride == phase % wide->stride) {
                p->taps[found] = i;
                p->offsets[found] = i / p->area * p->plane +
                                    (high->reach - y / high->stride) * wide->length + wide->reach -
                                    x / wide->stride;
                found++;
            }
        }
        p->ends[phase] = found;
    }
}

#define OPSCOPE__PHASES(name, type)                                                                \
    /* Copies the gradients of a slice (one group of one image) between their margins. */          \
    static void opscope__phases_grad_##name(const struct opscope__phases *p, const type *grad,     \
                                            type *to)                                              \
    {                                                                                              \
        const int64_t *size = p->c->out_size;                                                      \
        int64_t begin[2], end[2];                                                                  \
        for (int i = 0; i < 2; i++) {                                                              \
            const struct opscope__phase_axis *a = &p->axis[i];                                     \
            begin[i] = a->first > a->reach ? a->first - a->reach : 0;                              \
            end[i] = opscope__at_most(a->first + a->positions, size[i]);                           \
        }                                                                                          \
        for (int64_t o = 0; o < p->c->out && begin[1] < end[1]; o++) {                             \
            for (int64_t y = begin[0]; y < end[0]; y++) {                                          \
                opscope__copy_##name(                                                              \
                    to + o * p->plane +                                                            \
                        (y - p->axis[0].first + p->axis[0].reach) * p->axis[1].length + begin[1] - \
                        p->axis[1].first + p->axis[1].reach,                                       \
                    grad + (o * size[0] + y) * size[1] + begin[1], end[1] - begin[1]);             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* The sums of one phase at `count` positions, and some more that complete a vector. */        \
    static void opscope__phase_sums_##name(const struct opscope__phases *p, int64_t phase,         \
                                           const type *grad, const type *weight, int64_t count,    \
                                           type *sums)                                             \
    {                                                                                              \
        enum { LANES = OPSCOPE__VECTOR_BYTES / sizeof(type) };                                     \
        int64_t first = phase > 0 ? p->ends[phase - 1] : 0, depth = p->ends[phase] - first, some;  \
        for (int64_t i = 0; i < count; i += some) {                                                \
            int64_t left = (count - i + LANES - 1) / LANES;                                        \
            some = (left > 4 ? OPSCOPE__WIDE_VECTORS : left > 2 ? 4 : 2) * LANES;                  \
            opscope__outputs_of_##name(weight + first, grad + i, p->offsets + first, depth,        \
                                       sums + i, 0, NULL, false, some, 1, 1);                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* The phases of columns, `room` elements each, become rows of the image. */                   \
    static void opscope__phases_weave_##name(const struct opscope__phase_axis *wide,               \
                                             const type *sums, int64_t room, int64_t count,        \
                                             type *to)                                             \
    {                                                                                              \
        enum { LANES = OPSCOPE__VECTOR_BYTES / sizeof(type) };                                     \
        if (wide->stride == 2) {                                                                   \
            const type *even = sums + (wide->lead == 0 ? 0 : room);                                \
            opscope__interleave_##name(even, wide->lead == 0 ? room : 1 - room,                    \
                                       (count + LANES - 1) / LANES * LANES, to, 2, 2);             \
            return;                                                                                \
        }                                                                                          \
        for (int64_t j = 0; j < wide->stride; j++) {                                               \
            int64_t at = wide->lead + j;                                                           \
            const type *from = sums + at % wide->stride * room + at / wide->stride;                \
            for (int64_t i = 0; i < count; i++) {                                                  \
                to[i * wide->stride + j] = from[i];                                                \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void opscope__phases_slice_##name(const struct opscope__phases *p, int64_t slice,       \
                                             type *weight, type *grad, type *sums, type *woven)    \
    {                                                                                              \
        const struct opscope__convolution *c = p->c;                                               \
        const struct opscope__phase_axis *high = &p->axis[0], *wide = &p->axis[1];                 \
        int64_t kernels = c->out * p->area, columns = c->size[1];                                  \
        const type *from = (const type *)(const void *)p->weight + slice % c->groups * kernels;    \
        type *image = (type *)(void *)p->input + slice * c->size[0] * columns;                     \
        for (int64_t i = 0; i < kernels; i++) {                                                    \
            weight[i] = from[p->taps[i]];                                                          \
        }                                                                                          \
        opscope__phases_grad_##name(p,                                                             \
                                    (const type *)(const void *)p->grad +                          \
                                        slice * c->out * c->out_size[0] * c->out_size[1],          \
                                    grad);                                                         \
        for (int64_t phase = 0; phase < high->stride; phase++) {                                   \
            for (int64_t q = 0; q < high->positions; q += p->rows) {                               \
                int64_t rows = opscope__at_most(p->rows, high->positions - q);                     \
                int64_t count = (rows - 1) * wide->length + wide->positions;                       \
                for (int64_t i = 0; i < wide->stride; i++) {                                       \
                    opscope__phase_sums_##name(p, phase * wide->stride + i,                        \
                                               grad + q * wide->length, weight, count,             \
                                               sums + i * p->room);                                \
                }                                                                                  \
                opscope__phases_weave_##name(wide, sums, p->room, count, woven);                   \
                for (int64_t i = 0; i < rows; i++) {                                               \
                    int64_t y = (q + i) * high->stride + phase - high->lead;                       \
                    if (y >= 0 && y < c->size[0]) {                                                \
                        opscope__copy_##name(image + y * columns,                                  \
                                             woven + i * wide->length * wide->stride, columns);    \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Units are the slices. */                                                                    \
    static void opscope__phases_part_##name(int64_t begin, int64_t end, void *arg)                 \
    {                                                                                              \
        struct opscope__phases *p = arg;                                                           \
        const struct opscope__phase_axis *wide = &p->axis[1];                                      \
        int64_t planes = p->c->out * p->plane + OPSCOPE__PATCH_SLACK;                              \
        int64_t sums = wide->stride * p->room + OPSCOPE__PATCH_SLACK;                              \
        type *room = opscope__aligned_take((size_t)(planes + 2 * sums + p->c->out * p->area) *     \
                                           sizeof *room);                                          \
        if (room == NULL) {                                                                        \
            opscope__store_relaxed(&p->status, OPSCOPE_ERR_NO_MEMORY);                             \
            return;                                                                                \
        }                                                                                          \
        memset(room, 0, (size_t)(planes + 2 * sums) * sizeof *room); /* the margins stay 0 */      \
        for (; begin < end; begin++) {                                                             \
            opscope__phases_slice_##name(p, begin, room + planes + 2 * sums, room, room + planes,  \
                                         room + planes + sums);                                    \
        }                                                                                          \
        free(room);                                                                                \
    }

OPSCOPE__PHASES(float32, float)
OPSCOPE__PHASES(float64, double)

/* The whole gradient, if opscope__phases_fit. The images, the gradients and the kernels have an
 * element. */
static int opscope__by_phases(const struct opscope__convolution *c, const char *grad,
                              const char *weight, char *input)
{
    struct opscope__phases p = {.c = c, .grad = grad, .weight = weight, .input = input};
    for (int i = 0; i < 2; i++) {
        p.axis[i] = opscope__phase_axis_of(&c->window[i], c->size[i]);
    }
    p.area = c->window[0].kernel * c->window[1].kernel;
    p.plane = p.axis[0].length * p.axis[1].length;
    p.rows = opscope__at_most(OPSCOPE__PHASE_SUMS / p.axis[1].length + 1, p.axis[0].positions);
    p.room = p.rows * p.axis[1].length + OPSCOPE__PATCH_SLACK;
    p.taps = malloc((size_t)(2 * c->out * p.area) * sizeof *p.taps);
    if (p.taps == NULL) {
        p.status = OPSCOPE_ERR_NO_MEMORY;
    } else {
        p.offsets = p.taps + c->out * p.area;
        opscope__phases_find_taps(&p);
        int64_t work = p.plane * c->out + c->size[0] * c->size[1];
        opscope__parallel(c->batch * c->groups, OPSCOPE__GRAIN / work + 1,
                          c->dtype == OPSCOPE_FLOAT32 ? opscope__phases_part_float32
                                                      : opscope__phases_part_float64,
                          &p);
        free(p.taps);
    }
    int status = opscope__load_relaxed(&p.status);
    return status == OPSCOPE_OK ? status
                                : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY,
                                                      "%s: out of memory for gradients", c->name);
}

#endif
