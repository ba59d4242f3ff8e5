/* tensor/ops/nn/image_phases.h -- the phases of an image, for convolutions with a stride whose
 * groups have one channel each.
 *
 * The image is copied once, its rows and columns sorted by their remainders by the stride: its
 * phases. The elements of one phase that an element of the kernel multiplies are then side by side.
 * Patches would be as many copies as the kernel has elements.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_IMAGE_PHASES_H
#define OPSCOPE_TENSOR_OPS_NN_IMAGE_PHASES_H

#include <stdlib.h>

#include "tensor/ops/nn/strips.h"

enum {
    OPSCOPE__MOST_IMAGE_PHASES = 16,   /* together */
    OPSCOPE__IMAGE_PHASES_MARGINS = 8, /* times the elements of images and outputs, at most */
    OPSCOPE__FEW_KERNELS = 2,          /* of a group; tiles of more are faster with patches */
};

/* The rows, or the columns, of the image in one phase. */
struct opscope__image_phase {
    int64_t first, count; /* of the image; count may be 0 */
    int64_t at;           /* where the first one is in the phase */
};

struct opscope__image_phases {
    const struct opscope__convolution *c;
    const char *input, *weight, *bias; /* contiguous; bias NULL: none */
    char *output;
    int64_t length[2]; /* rows and columns of a phase */
    struct opscope__image_phase phase[2][OPSCOPE__MOST_IMAGE_PHASES]; /* of rows, and of columns */
    int64_t rows;     /* of outputs that are computed together */
    int64_t *offsets; /* of each element of the kernel: where output 0 finds its factor */
    int status;       /* any part that fails writes it, relaxed; read after the parts have joined */
};

static inline int64_t opscope__image_phase_length(const struct opscope__convolution *c, int dim)
{
    const struct opscope__window *w = &c->window[dim];
    return c->out_size[dim] + (w->kernel - 1) * w->dilation / w->stride;
}

/* Elements of all phases, and more that vectors read after them. */
static inline int64_t opscope__image_phases_room(const struct opscope__convolution *c)
{
    return c->window[0].stride * c->window[1].stride * opscope__image_phase_length(c, 0) *
               opscope__image_phase_length(c, 1) +
           OPSCOPE__PATCH_SLACK;
}

static inline struct opscope__image_phase opscope__image_phase_of(
    const struct opscope__convolution *c, int dim, int64_t phase)
{
    const struct opscope__window *w = &c->window[dim];
    int64_t lead = w->padding % w->stride;
    struct opscope__image_phase one = {.first = phase - lead + (phase < lead ? w->stride : 0)};
    one.at = (one.first + w->padding) / w->stride;
    one.count = opscope__at_most((c->size[dim] - one.first + w->stride - 1) / w->stride,
                                 opscope__image_phase_length(c, dim) - one.at);
    one.count = one.first < c->size[dim] && one.count > 0 ? one.count : 0;
    return one;
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
    /* Sorts some lines of an image, whose rows are in one phase, by the phases of columns. */     \
    static inline void opscope__sort_lines_##name(const struct opscope__image_phases *p,           \
                                                  const type *from, int64_t from_pitch,            \
                                                  int64_t lines, type *to)                         \
    {                                                                                              \
        const struct opscope__image_phase *wide = p->phase[1];                                     \
        int64_t across = p->c->window[1].stride, pitch = p->length[1];                             \
        int64_t step = p->length[0] * pitch, sorted = 0;                                           \
        if (across == 2) { /* columns 0 and 1 begin a phase each */                                \
            int first = wide[0].first == 0 ? 0 : 1;                                                \
            sorted = opscope__at_most(wide[0].count, wide[1].count);                               \
            opscope__split_lines_##name(to + first * step + wide[first].at,                        \
                                        to + (1 - first) * step + wide[1 - first].at, pitch, from, \
                                        from_pitch, lines, sorted);                                \
        }                                                                                          \
        for (int64_t j = 0; j < across; j++, to += step) {                                         \
            if (wide[j].count == sorted) {                                                         \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t y = 0; y < lines; y++) {                                                  \
                for (int64_t x = sorted; x < wide[j].count; x++) {                                 \
                    to[y * pitch + wide[j].at + x] =                                               \
                        from[y * from_pitch + wide[j].first + x * across];                         \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Sorts one image by phases, between their margins of zeros. */                               \
    static void opscope__sort_phases_##name(const struct opscope__image_phases *p,                 \
                                            const type *image, type *to)                           \
    {                                                                                              \
        const struct opscope__convolution *c = p->c;                                               \
        const struct opscope__image_phase *high = p->phase[0];                                     \
        int64_t down = c->window[0].stride, across = c->window[1].stride;                          \
        for (int64_t i = 0; i < down; i++, to += across * p->length[0] * p->length[1]) {           \
            opscope__sort_lines_##name(p, image + high[i].first * c->size[1], down * c->size[1],   \
                                       high[i].count, to + high[i].at * p->length[1]);             \
        }                                                                                          \
    }

OPSCOPE__IMAGE_PHASES(float32, float)
OPSCOPE__IMAGE_PHASES(float64, double)

/* Computes what does not depend on the contents; `offsets` is to be freed. False if memory runs
 * out.
 */
static bool opscope__image_phases_prepare(struct opscope__image_phases *p)
{
    const struct opscope__convolution *c = p->c;
    const struct opscope__window *high = &c->window[0], *wide = &c->window[1];
    for (int dim = 0; dim < 2; dim++) {
        p->length[dim] = opscope__image_phase_length(c, dim);
        for (int64_t i = 0; i < c->window[dim].stride; i++) {
            p->phase[dim][i] = opscope__image_phase_of(c, dim, i);
        }
    }
    int64_t area = high->kernel * wide->kernel;
    p->offsets = malloc((size_t)area * sizeof *p->offsets);
    for (int64_t i = 0; i < area && p->offsets != NULL; i++) {
        int64_t y = i / wide->kernel * high->dilation, x = i % wide->kernel * wide->dilation;
        int64_t phase = y % high->stride * wide->stride + x % wide->stride;
        p->offsets[i] = (phase * p->length[0] + y / high->stride) * p->length[1] + x / wide->stride;
    }
    return p->offsets != NULL;
}

#endif
