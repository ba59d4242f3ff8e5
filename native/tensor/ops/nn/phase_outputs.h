/* tensor/ops/nn/phase_outputs.h -- a convolution by the phases of its images (image_phases.h). */
#ifndef OPSCOPE_TENSOR_OPS_NN_PHASE_OUTPUTS_H
#define OPSCOPE_TENSOR_OPS_NN_PHASE_OUTPUTS_H

#include "base/atomics.h"
#include "opscope/fork.h"
#include "tensor/kernels/parallel.h"
#include "tensor/ops/nn/image_phases.h"

enum { OPSCOPE__OUTPUTS_AT_ONCE = 2048 }; /* or a row */

#define OPSCOPE__PHASE_OUTPUTS(name, type)                                                         \
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
        int64_t phases = opscope__image_phases_room(c);                                            \
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

OPSCOPE__PHASE_OUTPUTS(float32, float)
OPSCOPE__PHASE_OUTPUTS(float64, double)

/* All outputs, of which there is one, if opscope__image_phases_fit. */
static int opscope__convolve_phases(const struct opscope__convolution *c, const char *input,
                                    const char *weight, const char *bias, char *output)
{
    struct opscope__image_phases p = {
        .c = c, .input = input, .weight = weight, .bias = bias, .output = output};
    p.status = opscope__image_phases_prepare(&p) ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
    if (p.status == OPSCOPE_OK) {
        p.rows = opscope__at_most(OPSCOPE__OUTPUTS_AT_ONCE / p.length[1] + 1, c->out_size[0]);
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
