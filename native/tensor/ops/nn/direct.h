/* tensor/ops/nn/direct.h -- convolutions by tiles of outputs.
 *
 * The weight is copied so that the kernels of a tile lie side by side. Channels are taken in
 * blocks: their patches, for a strip of outputs, stay in the second-level cache, and the part of
 * the weight that they meet is read for one tile of outputs after the other.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_DIRECT_H
#define OPSCOPE_TENSOR_OPS_NN_DIRECT_H

#include "base/atomics.h"
#include "opscope/fork.h"
#include "tensor/kernels/parallel.h"
#include "tensor/ops/nn/strips.h"
#include "tensor/ops/nn/tiles.h"

/* Patches of a block of channels, and of one if there are many kernels, which then leaves more of
 * the cache to them. Those of a tile meet one kernel after the other: with vectors of 32 bytes they
 * stay in the first-level cache, 14 KiB of them. On a Zen 3, 384 took a sixth longer. */
#if OPSCOPE__VECTOR_BYTES == 32
enum { OPSCOPE__BLOCK_DEPTH = 144, OPSCOPE__SMALL_BLOCK_DEPTH = 96 };
#else
enum { OPSCOPE__BLOCK_DEPTH = 384, OPSCOPE__SMALL_BLOCK_DEPTH = 192 };
#endif

enum {
    OPSCOPE__MANY_KERNELS = 256,
    OPSCOPE__LEAST_OUTPUTS = 96,        /* from which copying the weight pays off */
    OPSCOPE__TILE_MULTIPLICATIONS = 32, /* in the time of one memory-bound addition */
};

/* How to read a weight: the element of output channel o and input channel c at position p of the
 * kernel is at group * group_step + o * out_step + c * in_step + p * step. */
struct opscope__weight {
    const char *data;
    int64_t group_step, out_step, in_step, step;
};

struct opscope__direct {
    const struct opscope__convolution *c;
    struct opscope__strips strips;
    struct opscope__weight weight;
    int64_t channels;         /* of a block */
    int64_t area;             /* positions of the kernel */
    int64_t width;            /* kernels of a group, rounded up to whole tiles */
    int64_t *offsets;         /* of a block's patches: [channel, position] */
    opscope_tensor *arranged; /* [group, block, tile, channel, position, kernel of the tile] */
    int64_t shares;           /* of a strip, which have some of the output channels each */
    const char *input;        /* contiguous, as the output */
    char *output;
    const char *bias; /* contiguous; NULL: none */
    int status;       /* any part that fails writes it, relaxed; read after the parts have joined */
};

/* Whether a convolution by tiles is faster than one by a matrix product. */
static inline bool opscope__direct_gains(const struct opscope__convolution *c)
{
    return c->batch * c->out_size[0] * c->out_size[1] >= OPSCOPE__LEAST_OUTPUTS;
}

/* The first vector of a tile: tiles are equally large, but those of one kernel are complete. */
static inline int64_t opscope__tile_start(int64_t vectors, int64_t tiles, int64_t tile,
                                          int64_t most)
{
    return most == OPSCOPE__WIDE_VECTORS ? opscope__at_most(tile * most, vectors)
                                         : vectors * tile / tiles;
}

#define OPSCOPE__DIRECT(name, type)                                                                \
    /* Arranges the kernels of tiles first to last of a group; `to` is the group's part. Channels  \
     * are in the outer loop, because a gradient reads the weight in their order. */               \
    static inline void opscope__arrange_##name(const struct opscope__direct *d, const type *from,  \
                                               int64_t first, int64_t last, type *to)              \
    {                                                                                              \
        enum { SOME = OPSCOPE__TILE_KERNELS };                                                     \
        const struct opscope__weight *w = &d->weight;                                              \
        bool is_plain = w->step == 1 && w->in_step == d->area;                                     \
        for (int64_t channel = 0, some; channel < d->c->in; channel += some) {                     \
            int64_t begin = channel / d->channels * d->channels;                                   \
            int64_t channels = opscope__at_most(d->channels, d->c->in - begin);                    \
            some = is_plain ? channels : 1;                                                        \
            for (int64_t tile = first; tile < last; tile++) {                                      \
                int64_t left = d->c->out - tile * SOME;                                            \
                int kernels = opscope__kernels_of(left);                                           \
                const type *one = from + tile * SOME * w->out_step + channel * w->in_step;         \
                type *out = to + begin * d->area * d->width + tile * SOME * channels * d->area +   \
                            (channel - begin) * d->area * kernels;                                 \
                if (is_plain && left >= SOME) {                                                    \
                    opscope__interleave_##name(one, w->out_step, channels * d->area, out, SOME,    \
                                               SOME);                                              \
                    continue;                                                                      \
                }                                                                                  \
                for (int64_t at = 0; at < some * d->area; at++, out += kernels) {                  \
                    const type *next = one + at * w->step;                                         \
                    for (int m = 0; m < SOME && left >= SOME; m++) {                               \
                        out[m] = next[m * w->out_step];                                            \
                    }                                                                              \
                    for (int m = 0; m < kernels && left < SOME; m++) {                             \
                        out[m] = m < left ? next[m * w->out_step] : 0;                             \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Outputs first to last of a strip. `room` takes those of several images. */                  \
    static inline void opscope__strip_##name(const struct opscope__direct *d,                      \
                                             const struct opscope__strip *strip, int64_t first,    \
                                             int64_t last, type *patches, type *room)              \
    {                                                                                              \
        const struct opscope__convolution *c = d->c;                                               \
        int64_t plane = c->out_size[0] * c->out_size[1];                                           \
        int64_t outputs = strip->images * strip->rows * strip->columns;                            \
        int64_t lanes = OPSCOPE__VECTOR_BYTES / (int64_t)sizeof(type);                             \
        int64_t vectors = (outputs + lanes - 1) / lanes;                                           \
        int64_t most = last - first == 1 ? OPSCOPE__WIDE_VECTORS : OPSCOPE__TILE_VECTORS;          \
        int64_t tiles = (vectors + most - 1) / most;                                               \
        type *made = (type *)(void *)d->output +                                                   \
                     ((strip->image * c->groups + strip->group) * c->out + first) * plane;         \
        type *output = d->strips.images > 1 ? room : made + strip->y * c->out_size[1] + strip->x;  \
        int64_t pitch = d->strips.images > 1 ? outputs : plane;                                    \
        const type *bias = (const type *)(const void *)d->bias;                                    \
        bias = bias != NULL ? bias + strip->group * c->out + first : NULL;                         \
        for (int64_t begin = 0; begin == 0 || begin < c->in; begin += d->channels) {               \
            int64_t channels = opscope__at_most(d->channels, c->in - begin);                       \
            int64_t depth = channels * d->area, from = strip->group * c->in + begin;               \
            type *image = (type *)(uintptr_t)d->input + from * c->size[0] * c->size[1];            \
            const type *weight = (const type *)(const void *)d->arranged->data +                   \
                                 from * d->area * d->width + first * depth;                        \
            opscope__fill_##name(&d->strips, image, strip, channels, patches);                     \
            for (int64_t tile = 0; tile < tiles; tile++) {                                         \
                int64_t at = opscope__tile_start(vectors, tiles, tile, most) * lanes;              \
                int64_t next = opscope__tile_start(vectors, tiles, tile + 1, most) * lanes;        \
                int64_t count = opscope__at_most(next, outputs) - at;                              \
                for (int64_t o = 0; o < last - first; o += OPSCOPE__TILE_KERNELS) {                \
                    int64_t left = last - first - o;                                               \
                    opscope__outputs_of_##name(weight + o * depth, patches + at, d->offsets,       \
                                               depth, output + o * pitch + at, pitch,              \
                                               bias != NULL ? bias + o : NULL, begin > 0, count,   \
                                               opscope__at_most(left, OPSCOPE__TILE_KERNELS),      \
                                               opscope__kernels_of(left));                         \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (int64_t n = 0; n < strip->images && d->strips.images > 1; n++) {                      \
            for (int64_t o = 0; o < last - first; o++) {                                           \
                opscope__copy_##name(made + (n * c->groups * c->out + o) * plane,                  \
                                     room + o * pitch + n * plane, plane);                         \
            }                                                                                      \
        }                                                                                          \
    }

OPSCOPE__DIRECT(float32, float)
OPSCOPE__DIRECT(float64, double)

/* Units are the tiles of kernels of all groups. */
static void opscope__arrange_part(int64_t begin, int64_t end, void *arg)
{
    const struct opscope__direct *d = arg;
    const struct opscope__convolution *c = d->c;
    int64_t tiles = (c->out + OPSCOPE__TILE_KERNELS - 1) / OPSCOPE__TILE_KERNELS, last;
    for (int64_t unit = begin; unit < end; unit += last - unit % tiles) {
        int64_t group = unit / tiles, first = unit % tiles;
        int64_t at = group * c->in * d->area * d->width, from = group * d->weight.group_step;
        last = opscope__at_most(tiles, first + end - unit);
        if (c->dtype == OPSCOPE_FLOAT32) {
            opscope__arrange_float32(d, (const float *)(const void *)d->weight.data + from, first,
                                     last, (float *)(void *)d->arranged->data + at);
        } else {
            opscope__arrange_float64(d, (const double *)(const void *)d->weight.data + from, first,
                                     last, (double *)(void *)d->arranged->data + at);
        }
    }
}

/* Units are the shares of all strips. */
static void opscope__direct_part(int64_t begin, int64_t end, void *arg)
{
    struct opscope__direct *d = arg;
    const struct opscope__convolution *c = d->c;
    const struct opscope__strips *s = &d->strips;
    int64_t tiles = (c->out + OPSCOPE__TILE_KERNELS - 1) / OPSCOPE__TILE_KERNELS;
    int64_t outputs = s->images > 1 ? s->images * s->rows * s->columns * c->out : 1;
    void *patches = opscope__patches_take(s, d->channels);
    void *room = opscope__aligned_take((size_t)outputs * opscope_dtype_bytes(c->dtype));
    if (patches == NULL || room == NULL) {
        opscope__store_relaxed(&d->status, OPSCOPE_ERR_NO_MEMORY);
        begin = end;
    }
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t share = unit % d->shares;
        struct opscope__strip strip = opscope__strip_at(s, unit / d->shares);
        int64_t first = tiles * share / d->shares * OPSCOPE__TILE_KERNELS;
        int64_t last = tiles * (share + 1) / d->shares * OPSCOPE__TILE_KERNELS;
        last = opscope__at_most(last, c->out);
        if (c->dtype == OPSCOPE_FLOAT32) {
            opscope__strip_float32(d, &strip, first, last, patches, room);
        } else {
            opscope__strip_float64(d, &strip, first, last, patches, room);
        }
    }
    free(patches);
    free(room);
}

static int opscope__direct_run(struct opscope__direct *d)
{
    const struct opscope__convolution *c = d->c;
    int64_t tiles = (c->out + OPSCOPE__TILE_KERNELS - 1) / OPSCOPE__TILE_KERNELS;
    opscope__parallel(c->groups * tiles,
                      OPSCOPE__GRAIN / (c->in * d->area * OPSCOPE__TILE_KERNELS + 1) + 1,
                      opscope__arrange_part, d);
    /* Few strips are shared by several threads, each of which copies the patches for itself. */
    int64_t strips = opscope__strip_count(&d->strips), wanted = 2 * opscope_pool_threads();
    if (wanted > 2 && strips < wanted) {
        d->shares = opscope__at_most((wanted + strips - 1) / strips, (tiles + 3) / 4);
    }
    int64_t outputs = d->strips.images * d->strips.rows * d->strips.columns;
    int64_t work = c->in * d->area * (c->out + 1) * outputs / d->shares;
    opscope__parallel(strips * d->shares,
                      OPSCOPE__GRAIN / (work / OPSCOPE__TILE_MULTIPLICATIONS + 1) + 1,
                      opscope__direct_part, d);
    return opscope__load_relaxed(&d->status);
}

/* Computes all outputs: input, bias and output are contiguous, and there is an output. */
static int opscope__convolve(const struct opscope__convolution *c, const char *input,
                             struct opscope__weight weight, const char *bias, char *output)
{
    struct opscope__direct d = {.c = c,
                                .weight = weight,
                                .area = c->window[0].kernel * c->window[1].kernel,
                                .shares = 1,
                                .input = input,
                                .output = output,
                                .bias = bias};
    d.channels = opscope__channels_of_block(
        c, c->out < OPSCOPE__MANY_KERNELS ? OPSCOPE__BLOCK_DEPTH : OPSCOPE__SMALL_BLOCK_DEPTH);
    d.strips = opscope__strips_of(c, d.channels, INT64_MAX, c->batch, true);
    int64_t rest = c->out % OPSCOPE__TILE_KERNELS;
    d.width = c->out - rest + (rest > 0 ? opscope__kernels_of(rest) : 0);
    int64_t count = c->groups * c->in * d.area * d.width;
    int status = opscope__tensor_empty(1, &count, c->dtype, &d.arranged);
    if (status != OPSCOPE_OK) {
        return status;
    }
    d.offsets = opscope__patch_offsets(&d.strips, d.channels);
    status = d.offsets != NULL ? opscope__direct_run(&d) : OPSCOPE_ERR_NO_MEMORY;
    free(d.offsets);
    opscope_tensor_release(d.arranged);
    return status == OPSCOPE_OK
               ? status
               : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY,
                                     "%s: out of memory for a strip of patches", c->name);
}

#endif
