/* tensor/ops/nn/phase_products.h -- the gradient of a convolution's kernels by the phases of its
 * images (image_phases.h). */
#ifndef OPSCOPE_TENSOR_OPS_NN_PHASE_PRODUCTS_H
#define OPSCOPE_TENSOR_OPS_NN_PHASE_PRODUCTS_H

#include "tensor/ops/nn/image_phases.h"

/* Groups first to last of one chunk of images. */
struct opscope__phase_groups {
    int64_t first, last;
    int64_t image, end_image;
};

#define OPSCOPE__PHASE_PRODUCTS(name, type)                                                        \
    /* The products of phases and gradients, added up in `sums`: [group, position of the kernel,   \
     * kernel, lane]. Images and groups are read as they lie in memory: a group by itself would    \
     * begin each image where the processor reads nothing ahead. The last, partial vectors of      \
     * lines have sums of their own until the end: their other lanes are products of what follows  \
     * the line. False if memory runs out. */                                                      \
    static bool opscope__products_by_phases_##name(const struct opscope__image_phases *p,          \
                                                   const struct opscope__phase_groups *some,       \
                                                   const type *grad, type *sums)                   \
    {                                                                                              \
        enum { LANES = OPSCOPE__VECTOR_BYTES / sizeof(type) };                                     \
        const struct opscope__convolution *c = p->c;                                               \
        int64_t area = c->window[0].kernel * c->window[1].kernel, width = c->out * LANES;          \
        int64_t outputs = c->out_size[0] * c->out_size[1], columns = c->out_size[1];               \
        int64_t slices = c->batch * c->groups;                                                     \
        int64_t vectors = columns / LANES, rest = columns % LANES;                                 \
        int64_t phases = opscope__image_phases_room(c);                                            \
        int64_t room_grads = c->out * outputs + OPSCOPE__PATCH_SLACK;                              \
        int64_t count = (some->last - some->first) * area * width;                                 \
        size_t bytes = (size_t)(phases + room_grads + count) * sizeof *sums;                       \
        type *room = opscope__aligned_take(bytes);                                                 \
        if (room == NULL) {                                                                        \
            return false;                                                                          \
        }                                                                                          \
        memset(room, 0, bytes);                                                                    \
        type *grad_room = room + phases, *partial = grad_room + room_grads;                        \
        memset(sums, 0, (size_t)count * sizeof *sums);                                             \
        for (int64_t image = some->image; image < some->end_image; image++) {                      \
            for (int64_t group = some->first; group < some->last; group++) {                       \
                int64_t slice = image * c->groups + group;                                         \
                int64_t at = (group - some->first) * area * width;                                 \
                opscope__sort_phases_##name(                                                       \
                    p, (const type *)(const void *)p->input + slice * c->size[0] * c->size[1],     \
                    room);                                                                         \
                const type *grads = grad + slice * c->out * outputs;                               \
                if ((slices - slice - 1) * c->out * outputs < LANES) {                             \
                    opscope__copy_##name(grad_room, grads, c->out *outputs);                       \
                    grads = grad_room; /* vectors read what follows */                             \
                }                                                                                  \
                for (int64_t o = 0; o < c->out; o++) {                                             \
                    const type *one = grads + o * outputs;                                         \
                    opscope__lines_##name(one, columns, room, p->length[1], p->offsets,            \
                                          c->out_size[0], vectors, sums + at + o * LANES, width,   \
                                          area);                                                   \
                    opscope__lines_##name(one + vectors * LANES, columns, room + vectors * LANES,  \
                                          p->length[1], p->offsets, c->out_size[0], rest > 0,      \
                                          partial + at + o * LANES, width, area);                  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            sums[i] += i % LANES < rest ? partial[i] : 0;                                          \
        }                                                                                          \
        free(room);                                                                                \
        return true;                                                                               \
    }

OPSCOPE__PHASE_PRODUCTS(float32, float)
OPSCOPE__PHASE_PRODUCTS(float64, double)

#endif
