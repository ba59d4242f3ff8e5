/* tensor/ops/nn/conv2d_weight_backward.c -- core::conv2d_weight_backward: the gradient of the
 * kernels. */
#include "base/atomics.h"
#include "opscope/fork.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"
#include "tensor/kernels/parallel.h"
#include "tensor/ops/nn/phase_products.h"
#include "tensor/ops/nn/strips.h"
#include "tensor/ops/nn/tiles.h"

enum {
    CHUNK_COUNT = 16,       /* maximum number of partial sums */
    ENOUGH_UNITS = 64,      /* to keep all processors busy */
    SUM_ELEMENTS = 1 << 20, /* maximum of all partial sums together, unless one is larger */
    BLOCK_DEPTH = 384,      /* patches of a block of channels */
    GRAD_BYTES = 32768,     /* of a tile's gradients, to stay in the first-level cache */
    MULTIPLICATIONS = 32,   /* in the time of one memory-bound addition */
};

/* Images are split into chunks, each with its own sum, so that the result does not depend on the
 * number of threads. If these are too few, output channels are split into shares. */
struct work {
    const struct opscope__convolution *c;
    struct opscope__strips strips;
    const char *grad; /* contiguous, as the input */
    char *input;
    char *sums;    /* [chunk, group, channel, position of the kernel, width] */
    int64_t area;  /* positions of the kernel */
    int64_t width; /* output channels, rounded up to whole vectors; if narrow, a vector for each */
    bool is_exchanged; /* the gradient and the input have exchanged their parts */
    bool is_narrow;    /* too few output channels to fill a vector: vectors have outputs instead */
    int64_t channels;  /* of a block, whose patches are copied together */
    int64_t *offsets;  /* of a block's patches: [channel, position of the kernel] */
    struct opscope__image_phases phases; /* if narrow, and opscope__image_phases_fit */
    int64_t chunks, shares;
    int status; /* any part that fails writes it, relaxed; the caller reads it after the parts have
                   been joined */
};

/* Output channels first to last. */
struct share {
    int64_t first, last;
};

/* The gradients of some channels at `outputs` outputs, the channels of an output side by side. */
#define TURN(name, type)                                                                           \
    static __attribute__((noinline)) void turn_##name(const type *grad, int64_t plane,             \
                                                      int64_t outputs, int64_t channels, type *to) \
    {                                                                                              \
        enum { LANES = OPSCOPE__VECTOR_BYTES / sizeof(type) };                                     \
        int64_t width = (channels + LANES - 1) / LANES * LANES;                                    \
        for (int64_t o = 0; o < width; o += LANES) {                                               \
            int64_t left = channels - o;                                                           \
            if (left >= LANES) {                                                                   \
                opscope__interleave_##name(grad + o * plane, plane, outputs, to + o, width,        \
                                           LANES);                                                 \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t i = 0; i < outputs; i++) {                                                \
                for (int64_t m = 0; m < LANES; m++) {                                              \
                    to[i * width + o + m] = m < left ? grad[(o + m) * plane + i] : 0;              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

TURN(float32, float)
TURN(float64, double)

/* Adds the products of a strip's patches and gradients. `turned` takes the gradients, the channels
 * of an output side by side. */
#define ADD_STRIP(name, type)                                                                      \
    static void add_strip_##name(const struct work *w, const struct opscope__strip *strip,         \
                                 const struct share *share, bool is_first, type *patches,          \
                                 type *turned, type *sums)                                         \
    {                                                                                              \
        enum { LANES = OPSCOPE__VECTOR_BYTES / sizeof(type) };                                     \
        const struct opscope__convolution *c = w->c;                                               \
        int64_t outputs = strip->rows * strip->columns, plane = c->out_size[0] * c->out_size[1];   \
        int64_t all = strip->images * outputs;                                                     \
        int64_t width = (share->last - share->first + LANES - 1) / LANES * LANES;                  \
        for (int64_t n = 0; n < strip->images && !w->is_narrow; n++) {                             \
            int64_t slice = (strip->image + n) * c->groups + strip->group;                         \
            turn_##name((const type *)(const void *)w->grad +                                      \
                            (slice * c->out + share->first) * plane + strip->y * c->out_size[1] +  \
                            strip->x,                                                              \
                        plane, outputs, share->last - share->first, turned + n * outputs * width); \
        }                                                                                          \
        int64_t vectors = width / LANES;                                                           \
        int64_t tiles = (vectors + OPSCOPE__SUM_VECTORS - 1) / OPSCOPE__SUM_VECTORS;               \
        int64_t step = GRAD_BYTES / (OPSCOPE__SUM_VECTORS * OPSCOPE__VECTOR_BYTES);                \
        for (int64_t begin = 0; begin < c->in; begin += w->channels) {                             \
            int64_t channels = opscope__at_most(w->channels, c->in - begin);                       \
            type *image = (type *)(void *)w->input +                                               \
                          (strip->group * c->in + begin) * c->size[0] * c->size[1];                \
            opscope__fill_##name(&w->strips, image, strip, channels, patches);                     \
            for (int64_t o = 0; o < c->out && w->is_narrow; o++) {                                 \
                int64_t slice = strip->image * c->groups + strip->group;                           \
                opscope__narrow_products_##name(                                                   \
                    (const type *)(const void *)w->grad + (slice * c->out + o) * plane +           \
                        strip->y * c->out_size[1] + strip->x,                                      \
                    patches, w->offsets, outputs, sums + begin * w->area * w->width + o * LANES,   \
                    w->width, is_first, channels * w->area);                                       \
            }                                                                                      \
            for (int64_t at = 0; at < all && !w->is_narrow; at += step) {                          \
                int64_t count = opscope__at_most(step, all - at);                                  \
                for (int64_t tile = 0; tile < tiles; tile++) {                                     \
                    int64_t first = vectors * tile / tiles;                                        \
                    opscope__products_of_##name(                                                   \
                        turned + at * width + first * LANES, width, patches + at, w->offsets,      \
                        count, sums + begin * w->area * w->width + share->first + first * LANES,   \
                        w->width, is_first && at == 0, channels * w->area,                         \
                        (int)(vectors * (tile + 1) / tiles - first));                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

ADD_STRIP(float32, float)
ADD_STRIP(float64, double)

/* Units are the shares of all groups of all chunks. */
static void part(int64_t begin, int64_t end, void *arg)
{
    struct work *w = arg;
    const struct opscope__convolution *c = w->c;
    bool is_small = c->dtype == OPSCOPE_FLOAT32;
    int64_t item = (int64_t)opscope_dtype_bytes(c->dtype), lanes = OPSCOPE__VECTOR_BYTES / item;
    int64_t vectors = w->width / lanes;
    void *patches = opscope__patches_take(&w->strips, w->channels);
    void *turned = opscope__aligned_take(
        (size_t)(w->strips.images * w->strips.rows * w->strips.columns * w->width * item));
    if (patches == NULL || turned == NULL) {
        opscope__store_relaxed(&w->status, OPSCOPE_ERR_NO_MEMORY);
        begin = end;
    }
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t part = unit % w->shares, group = unit / w->shares % c->groups;
        int64_t chunk = unit / w->shares / c->groups;
        char *sums = w->sums + (chunk * c->groups + group) * c->in * w->area * w->width * item;
        struct share share = {
            .first = vectors * part / w->shares * lanes,
            .last = opscope__at_most(vectors * (part + 1) / w->shares * lanes, c->out)};
        for (int64_t image = c->batch * chunk / w->chunks,
                     end_image = c->batch * (chunk + 1) / w->chunks, some;
             image < end_image; image += some) {
            some = opscope__at_most(w->strips.images, end_image - image);
            for (int64_t i = 0; i < w->strips.count; i++) {
                struct opscope__strip strip =
                    opscope__strip_at(&w->strips, group * w->strips.count + i);
                bool is_first = image == c->batch * chunk / w->chunks && i == 0;
                strip.image = image;
                strip.images = some;
                if (is_small) {
                    add_strip_float32(w, &strip, &share, is_first, patches, turned,
                                      (float *)(void *)sums);
                } else {
                    add_strip_float64(w, &strip, &share, is_first, patches, turned,
                                      (double *)(void *)sums);
                }
            }
        }
    }
    free(patches);
    free(turned);
}

/* The same with the phases of images instead of patches. */
static void part_by_phases(int64_t begin, int64_t end, void *arg)
{
    struct work *w = arg;
    const struct opscope__convolution *c = w->c;
    int64_t count = c->in * w->area * w->width;
    bool has_room = true;
    for (int64_t unit = begin, next; unit < end && has_room; unit = next) {
        int64_t group = unit % c->groups, chunk = unit / c->groups;
        next = opscope__at_most(end, unit - group + c->groups);
        const struct opscope__phase_groups some = {.first = group,
                                                   .last = group + next - unit,
                                                   .image = c->batch * chunk / w->chunks,
                                                   .end_image = c->batch * (chunk + 1) / w->chunks};
        if (c->dtype == OPSCOPE_FLOAT32) {
            has_room = opscope__products_by_phases_float32(&w->phases, &some,
                                                           (const float *)(const void *)w->grad,
                                                           (float *)(void *)w->sums + unit * count);
        } else {
            has_room = opscope__products_by_phases_float64(
                &w->phases, &some, (const double *)(const void *)w->grad,
                (double *)(void *)w->sums + unit * count);
        }
    }
    if (!has_room) {
        opscope__store_relaxed(&w->status, OPSCOPE_ERR_NO_MEMORY);
    }
}

/* Adds the chunks' sums, and writes them in the weight's order. */
#define FINISH(name, type)                                                                         \
    static void finish_##name(const struct work *w, type *out)                                     \
    {                                                                                              \
        enum { LANES = OPSCOPE__VECTOR_BYTES / sizeof(type) };                                     \
        const struct opscope__convolution *c = w->c;                                               \
        int64_t height = c->in * w->area, count = c->groups * height * w->width;                   \
        type *sums = (type *)(void *)w->sums;                                                      \
        for (int64_t i = 1; i < w->chunks; i++) {                                                  \
            for (int64_t j = 0; j < count; j++) {                                                  \
                sums[j] += sums[i * count + j];                                                    \
            }                                                                                      \
        }                                                                                          \
        for (int64_t i = 0; i < count / LANES && w->is_narrow; i++) {                              \
            type sum = 0;                                                                          \
            for (int64_t j = 0; j < LANES; j++) {                                                  \
                sum += sums[i * LANES + j];                                                        \
            }                                                                                      \
            sums[i] = sum;                                                                         \
        }                                                                                          \
        int64_t width = w->is_narrow ? c->out : w->width;                                          \
        for (int64_t group = 0; group < c->groups; group++) {                                      \
            int64_t k = 0;                                                                         \
            for (; w->is_exchanged && k < height; k++) {                                           \
                memcpy(out + k * c->out, sums + k * width, (size_t)c->out * sizeof *out);          \
            }                                                                                      \
            for (; k + LANES <= height; k += LANES) {                                              \
                opscope__interleave_##name(sums + k * width, width, c->out, out + k, height,       \
                                           LANES);                                                 \
            }                                                                                      \
            for (; k < height; k++) {                                                              \
                for (int64_t o = 0; o < c->out; o++) {                                             \
                    out[o * height + k] = sums[k * width + o];                                     \
                }                                                                                  \
            }                                                                                      \
            out += height * c->out;                                                                \
            sums += height * width;                                                                \
        }                                                                                          \
    }

FINISH(float32, float)
FINISH(float64, double)

/* Computes the sums of all chunks. */
static int run(struct work *w)
{
    const struct opscope__convolution *c = w->c;
    int64_t images = (c->batch + w->chunks - 1) / w->chunks;
    int64_t work = images * c->out_size[0] * c->out_size[1] * c->in * w->area * w->width;
    int64_t least = OPSCOPE__GRAIN / (work / w->shares / MULTIPLICATIONS + 1) + 1;
    if (w->is_narrow && opscope__image_phases_fit(c)) {
        w->phases = (struct opscope__image_phases){.c = c, .input = w->input};
        if (!opscope__image_phases_prepare(&w->phases)) {
            return OPSCOPE_ERR_NO_MEMORY;
        }
        opscope__parallel(w->chunks * c->groups, least, part_by_phases, w);
        free(w->phases.offsets);
        return opscope__load_relaxed(&w->status);
    }
    w->channels = opscope__channels_of_block(c, BLOCK_DEPTH);
    w->strips = opscope__strips_of(c, w->channels, INT64_MAX,
                                   w->is_narrow ? 1 : (c->batch + w->chunks - 1) / w->chunks, true);
    w->offsets = opscope__patch_offsets(&w->strips, w->channels);
    if (w->offsets == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    opscope__parallel(w->chunks * c->groups * w->shares, least, part, w);
    free(w->offsets);
    return opscope__load_relaxed(&w->status);
}

/* There is an image and an element of the weight. */
static int add_up(const struct opscope__convolution *c, char *grad, char *input, char *out)
{
    int64_t lanes = OPSCOPE__VECTOR_BYTES / (int64_t)opscope_dtype_bytes(c->dtype);
    int64_t vectors = (c->out + lanes - 1) / lanes;
    struct opscope__convolution exchanged = *c;
    struct work w = {.c = c,
                     .grad = grad,
                     .input = input,
                     .area = c->window[0].kernel * c->window[1].kernel,
                     .width = vectors * lanes,
                     .is_narrow = c->out <= lanes / 4,
                     .chunks = 1,
                     .shares = 1};
    /* With a single position, the gradient's channels can be the patches: of the two, the smaller
     * is turned around. */
    if (!w.is_narrow && opscope__is_bare(c) && c->in < c->out && c->in > lanes / 4) {
        exchanged.in = c->out;
        exchanged.out = c->in;
        w.c = c = &exchanged;
        w.grad = input;
        w.input = grad;
        w.is_exchanged = true;
        vectors = (c->out + lanes - 1) / lanes;
        w.width = vectors * lanes;
    }
    if (w.is_narrow) {
        w.width = c->out * lanes;
    }
    int64_t count = c->groups * c->in * w.area * w.width;
    w.chunks = opscope__at_most(c->batch, SUM_ELEMENTS / count);
    w.chunks = opscope__at_most(w.chunks > 0 ? w.chunks : 1, CHUNK_COUNT);
    if (w.is_narrow) { /* each chunk would add more sums than it saves time */
        w.chunks = opscope__at_most(w.chunks, (ENOUGH_UNITS + c->groups - 1) / c->groups);
    }
    int64_t units = w.chunks * c->groups, wanted = 2 * opscope_pool_threads();
    if (wanted > 2 && units < wanted && !w.is_narrow) {
        w.shares = opscope__at_most((wanted + units - 1) / units,
                                    (vectors + OPSCOPE__SUM_VECTORS - 1) / OPSCOPE__SUM_VECTORS);
    }
    const int64_t sizes[] = {w.chunks, count};
    opscope_tensor *sums;
    int status = opscope__tensor_empty(2, sizes, c->dtype, &sums);
    if (status != OPSCOPE_OK) {
        return status;
    }
    w.sums = sums->data;
    status = run(&w);
    if (status == OPSCOPE_OK && c->dtype == OPSCOPE_FLOAT32) {
        finish_float32(&w, (float *)(void *)out);
    } else if (status == OPSCOPE_OK) {
        finish_float64(&w, (double *)(void *)out);
    }
    opscope_tensor_release(sums);
    return status == OPSCOPE_OK
               ? status
               : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY,
                                     "%s: out of memory for a strip of patches", c->name);
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *grad = arguments[0].as.tensor, *input = arguments[1].as.tensor;
    opscope_tensor *flat_grad = NULL, *flat_input = NULL, *made = NULL;
    struct opscope__convolution c;
    int status = opscope__convolution_read(
        opscope__call_name(call), opscope__outline_of(input),
        opscope__outline_from(&arguments[2], (opscope_dtype)input->dtype), &arguments[3], &c);
    if (status == OPSCOPE_OK) {
        status = opscope__check_grad_output(&c, grad);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(grad, &flat_grad);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(input, &flat_input);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(4, arguments[2].as.integers, c.dtype, &made);
    }
    if (status == OPSCOPE_OK && c.batch == 0) {
        opscope__fill(made, &opscope__I(0));
    } else if (status == OPSCOPE_OK && made->count > 0) {
        status = add_up(&c, flat_grad->data, flat_input->data, made->data);
    }
    opscope_tensor_release(flat_grad);
    opscope_tensor_release(flat_input);
    return opscope__tensor_finish(status, made, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_argument *a = backward->arguments;
    const opscope_argument more = opscope__T(backward->gradients[0]), none = opscope__N;
    if (backward->wanted[0]) {
        gradients[0] =
            opscope__keep(opscope__f(&f, "conv2d", a[1], more, none, a[3], a[4], a[5], a[6]));
    }
    if (backward->wanted[1]) {
        const opscope_tensor *input = backward->inputs[1];
        const opscope_argument size = opscope__L(opscope__sizes(input), input->dims);
        gradients[1] = opscope__keep(
            opscope__f(&f, "conv2d_input_backward", a[0], more, size, a[3], a[4], a[5], a[6]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(conv2d_weight_backward) = {
    .schema = "conv2d_weight_backward(Tensor grad_output, Tensor input, int[] weight_size, "
              "int[2] stride=1, int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor",
    .doc = "The gradient of conv2d's weight, of sizes weight_size, from that of its output.",
    .samples = "t(2, 4, 5, 6), t(2, 3, 5, 6), [4, 3, 3, 3], padding=1\n"
               "t(2, 6, 3, 3), t(2, 4, 6, 5), [6, 2, 3, 3], 2, 1, groups=2\n"
               "t(2, 4, 4, 5), t(2, 3, 4, 5), [4, 3, 1, 1]",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
};
