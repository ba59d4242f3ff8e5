/* tensor/ops/nn/conv2d_weight_backward.c -- core::conv2d_weight_backward: the gradient of the
 * kernels. */
#include "base/atomics.h"
#include "tensor/ops/nn/convolution.h"

enum {
    UNIT_COUNT = 16,        /* number of units of work, whatever the number of threads */
    SUM_ELEMENTS = 1 << 20, /* maximum of all partial sums together, unless one is larger */
};

/* Images are split into chunks, each with its own sum, so that the result does not depend on the
 * number of threads. If that gives too few units, channels are split into blocks. */
struct work {
    const struct opscope__convolution *c;
    const char *grad;
    char *input;
    char *sums; /* [chunk, group, turn, patch, out] */
    int64_t chunks, blocks;
    int status; /* any part that fails writes it, relaxed; the caller reads it after the parts have
                   been joined */
};

/* Adds the products of patches and gradient, for channels begin to end of one group of one
 * image. */
static int add_slice(const struct work *w, int64_t slice, int64_t begin, int64_t end, char *sum,
                     char *room)
{
    const struct opscope__convolution *c = w->c;
    int64_t item = (int64_t)opscope_dtype_bytes(c->dtype), height = c->in * c->depth;
    int64_t plane = c->out_size[0] * c->out_size[1];
    char *image = w->input + (slice * c->in + begin) * c->size[0] * c->size[1] * item;
    int status = OPSCOPE_OK;
    for (int64_t i = 0; i < c->strip_count && status == OPSCOPE_OK; i++) {
        struct opscope__strip strip = opscope__strip_at(c, i);
        struct opscope__matrix patches = opscope__patches(c, image, &strip, end - begin, room);
        int64_t at = slice * c->out * plane + strip.y * c->out_size[1] + strip.x;
        struct opscope__matrix grad = {w->grad + at * item, patches.columns, c->out, 1, plane};
        for (int64_t turn = 0; turn < c->turns && status == OPSCOPE_OK; turn++) {
            int64_t first = (turn * height + begin * c->depth) * c->out;
            status =
                opscope__gemm(c->name, c->dtype, &patches, &grad, sum + first * item, c->out, true);
            patches.data += opscope__turn_shift(c, &strip) * item;
        }
    }
    return status;
}

/* Units are the blocks of channels of all groups of all chunks. */
static void part(int64_t begin, int64_t end, void *arg)
{
    struct work *w = arg;
    const struct opscope__convolution *c = w->c;
    int64_t sum_bytes =
        c->turns * c->in * c->depth * c->out * (int64_t)opscope_dtype_bytes(c->dtype);
    char *room = opscope__patches_take(c, (c->in + w->blocks - 1) / w->blocks);
    int status = room != NULL ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
    for (int64_t unit = begin; unit < end && status == OPSCOPE_OK; unit++) {
        int64_t block = unit % w->blocks, group = unit / w->blocks % c->groups;
        int64_t chunk = unit / w->blocks / c->groups;
        char *sum = w->sums + (chunk * c->groups + group) * sum_bytes;
        for (int64_t image = c->batch * chunk / w->chunks;
             image < c->batch * (chunk + 1) / w->chunks && status == OPSCOPE_OK; image++) {
            status = add_slice(w, image * c->groups + group, c->in * block / w->blocks,
                               c->in * (block + 1) / w->blocks, sum, room);
        }
    }
    free(room);
    if (status != OPSCOPE_OK) {
        opscope__store_relaxed(&w->status, status);
    }
}

#define GATHER(name, type)                                                                         \
    static void name(type *sums, int64_t chunks, int64_t count)                                    \
    {                                                                                              \
        for (int64_t i = 1; i < chunks; i++) {                                                     \
            const type *more = sums + i * count;                                                   \
            for (int64_t j = 0; j < count; j++) {                                                  \
                sums[j] += more[j];                                                                \
            }                                                                                      \
        }                                                                                          \
    }

GATHER(gather_float32, float)
GATHER(gather_float64, double)

/* Sums all chunks, in the weight's order. */
static int finish(const struct opscope__convolution *c, const opscope_tensor *sums, int64_t chunks,
                  const int64_t *weight_sizes, opscope_tensor **out)
{
    int64_t height = c->in * c->depth, count = c->groups * c->turns * height * c->out;
    if (c->dtype == OPSCOPE_FLOAT32) {
        gather_float32((float *)(void *)sums->data, chunks, count);
    } else {
        gather_float64((double *)(void *)sums->data, chunks, count);
    }
    const int64_t sizes[] = {c->groups, c->out, c->in, c->turns, c->depth};
    const int64_t strides[] = {c->turns * height * c->out, 1, c->depth * c->out, height * c->out,
                               c->out};
    opscope_tensor *view, *ordered;
    int status = opscope__tensor_view(sums, 5, sizes, strides, 0, &view);
    if (status == OPSCOPE_OK) {
        status = opscope__clone(view, &ordered);
        opscope_tensor_release(view);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_over(ordered->storage, ordered->data, c->dtype, 4, weight_sizes,
                                      NULL, out);
        opscope_tensor_release(ordered);
    }
    return status;
}

static int add_up(const struct opscope__convolution *c, const opscope_tensor *grad,
                  const opscope_tensor *input, const int64_t *weight_sizes, opscope_tensor **out)
{
    int64_t count = c->groups * c->turns * c->in * c->depth * c->out;
    struct work w = {c, grad->data, input->data, NULL, 1, 1, OPSCOPE_OK};
    if (count > 0 && c->batch > 0) {
        w.chunks = opscope__at_most(c->batch, SUM_ELEMENTS / count);
        w.chunks = opscope__at_most(w.chunks > 0 ? w.chunks : 1, UNIT_COUNT);
        w.blocks = opscope__at_most(
            (UNIT_COUNT + w.chunks * c->groups - 1) / (w.chunks * c->groups), (c->in + 15) / 16);
    }
    const int64_t sizes[] = {w.chunks, count};
    opscope_tensor *sums;
    int status = opscope__tensor_empty(2, sizes, c->dtype, &sums);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__fill(sums, &opscope__I(0));
    if (count > 0 && c->batch > 0) {
        w.sums = sums->data;
        int64_t slices = (c->batch + w.chunks - 1) / w.chunks * c->strip_count;
        opscope__parallel(w.chunks * c->groups * w.blocks,
                          opscope__strips_worth_a_thread(c) / slices + 1, part, &w);
        status = opscope__convolution_done(c, opscope__load_relaxed(&w.status));
    }
    if (status == OPSCOPE_OK) {
        status = finish(c, sums, w.chunks, weight_sizes, out);
    }
    opscope_tensor_release(sums);
    return status;
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *grad = arguments[0].as.tensor, *input = arguments[1].as.tensor;
    opscope_tensor *flat_grad = NULL, *flat_input = NULL;
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
        status = add_up(&c, flat_grad, flat_input, arguments[2].as.integers, outputs);
    }
    opscope_tensor_release(flat_grad);
    opscope_tensor_release(flat_input);
    return status;
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
