/* tensor/ops/nn/conv2d_input_backward.c -- core::conv2d_input_backward: the gradient of the
 * images. */
#include "tensor/kernels/convert.h"
#include "tensor/ops/nn/direct.h"
#include "tensor/ops/nn/patch_matrix.h"
#include "tensor/ops/nn/phases.h"

/* Everything is contiguous. */
struct work {
    const struct opscope__convolution *c;
    struct opscope__strips strips;
    const char *grad;
    const char *weight;
    char *input;    /* the result */
    int64_t blocks; /* the channels of a group are split into these */
    int status; /* any part that fails writes it, relaxed; the caller reads it after the parts have
                   been joined */
};

/* Processes channels begin to end of a slice (one group of one image), strip by strip: the patches'
 * gradients are products, which are added at the patches' positions. */
static int slice_channels(const struct work *w, int64_t slice, int64_t begin, int64_t end,
                          char *room)
{
    const struct opscope__convolution *c = w->c;
    bool is_bare = opscope__is_bare(c);
    int64_t item = (int64_t)opscope_dtype_bytes(c->dtype);
    int64_t area = c->window[0].kernel * c->window[1].kernel, height = c->in * area;
    int64_t plane = c->out_size[0] * c->out_size[1], group = slice % c->groups;
    int64_t channel_bytes = c->size[0] * c->size[1] * item;
    char *first = w->input + (group * c->in + begin) * channel_bytes; /* in the first image */
    char *image = w->input + (slice * c->in + begin) * channel_bytes;
    if (!is_bare) {
        memset(image, 0, (size_t)((end - begin) * channel_bytes));
    }
    int status = OPSCOPE_OK;
    for (int64_t i = 0; i < w->strips.count && status == OPSCOPE_OK; i++) {
        struct opscope__strip strip = opscope__strip_at(&w->strips, slice * w->strips.count + i);
        int64_t at = strip.y * c->out_size[1] + strip.x;
        struct opscope__matrix grad = {w->grad + (slice * c->out * plane + at) * item, c->out,
                                       strip.rows * strip.columns, plane, 1};
        struct opscope__matrix weight = {
            w->weight + (group * c->out * height + begin * area) * item, (end - begin) * area,
            c->out, 1, height};
        status =
            opscope__gemm(c->name, c->dtype, &weight, &grad, is_bare ? image + at * item : room,
                          is_bare ? plane : w->strips.pitch, false);
        if (!is_bare && c->dtype == OPSCOPE_FLOAT32) {
            opscope__spill_float32(&w->strips, (float *)(void *)first, &strip, end - begin,
                                   (float *)(void *)room);
        } else if (!is_bare) {
            opscope__spill_float64(&w->strips, (double *)(void *)first, &strip, end - begin,
                                   (double *)(void *)room);
        }
    }
    return status;
}

/* Units are the blocks of channels of all groups of all images. */
static void part(int64_t begin, int64_t end, void *arg)
{
    struct work *w = arg;
    const struct opscope__convolution *c = w->c;
    bool is_bare = opscope__is_bare(c);
    char *room =
        is_bare ? NULL : opscope__patches_take(&w->strips, (c->in + w->blocks - 1) / w->blocks);
    int status = room != NULL || is_bare ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
    for (int64_t unit = begin; unit < end && status == OPSCOPE_OK; unit++) {
        int64_t block = unit % w->blocks;
        status = slice_channels(w, unit / w->blocks, c->in * block / w->blocks,
                                c->in * (block + 1) / w->blocks, room);
    }
    free(room);
    if (status != OPSCOPE_OK) {
        opscope__store_relaxed(&w->status, status);
    }
}

static int by_products(const struct opscope__convolution *c, const char *grad, const char *weight,
                       char *input)
{
    struct work w = {c, opscope__product_strips(c), grad, weight, input, 1, OPSCOPE_OK};
    int64_t slices = c->batch * c->groups,
            grain = opscope__strips_worth_a_thread(&w.strips) / w.strips.count + 1;
    if (grain == 1) { /* large images: if there are few, split their channels */
        w.blocks = opscope__at_most((16 + slices - 1) / slices, (c->in + 15) / 16);
    }
    opscope__parallel(slices * w.blocks, grain, part, &w);
    return opscope__products_done(c, opscope__load_relaxed(&w.status));
}

/* With a stride of 1 the gradient is itself a convolution, of the output's gradient, by kernels
 * that are turned around and whose channels are exchanged. */
static int by_convolution(const struct opscope__convolution *c, const char *grad,
                          const char *weight, char *input)
{
    struct opscope__convolution turned = *c;
    int64_t area = c->window[0].kernel * c->window[1].kernel;
    turned.in = c->out;
    turned.out = c->in;
    for (int i = 0; i < 2; i++) {
        turned.size[i] = c->out_size[i];
        turned.out_size[i] = c->size[i];
        turned.window[i].padding =
            opscope__window_span(&c->window[i]) - 1 - c->window[i].padding; /* also negative */
    }
    const char *last = weight + (area - 1) * (int64_t)opscope_dtype_bytes(c->dtype);
    struct opscope__weight read = {last, c->out * c->in * area, area, c->in * area, -1};
    return opscope__convolve(&turned, grad, read, NULL, input);
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *grad = arguments[0].as.tensor, *flat = NULL, *weight = NULL, *made = NULL;
    struct opscope__convolution c;
    int status = opscope__convolution_read(
        opscope__call_name(call), opscope__outline_from(&arguments[2], (opscope_dtype)grad->dtype),
        opscope__outline_of(arguments[1].as.tensor), &arguments[3], &c);
    if (status == OPSCOPE_OK) {
        status = opscope__check_grad_output(&c, grad);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(c.dims, arguments[2].as.integers, c.dtype, &made);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(grad, &flat);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(arguments[1].as.tensor, &weight);
    }
    if (status == OPSCOPE_OK && c.out == 0) {
        opscope__fill(made, &opscope__I(0));
    } else if (status == OPSCOPE_OK && made->count > 0) {
        bool is_simple = c.window[0].stride == 1 && c.window[1].stride == 1;
        status = (is_simple && opscope__direct_gains(&c) ? by_convolution
                  : !is_simple && opscope__phases_fit(&c)
                      ? opscope__by_phases
                      : by_products)(&c, flat->data, weight->data, made->data);
    }
    opscope_tensor_release(flat);
    opscope_tensor_release(weight);
    return opscope__tensor_finish(status, made, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_argument *a = backward->arguments;
    const opscope_argument more = opscope__T(backward->gradients[0]), none = opscope__N;
    if (backward->wanted[0]) {
        gradients[0] =
            opscope__keep(opscope__f(&f, "conv2d", more, a[1], none, a[3], a[4], a[5], a[6]));
    }
    if (backward->wanted[1]) {
        const opscope_argument size = opscope__L(opscope__sizes(backward->inputs[1]), 4);
        gradients[1] = opscope__keep(
            opscope__f(&f, "conv2d_weight_backward", a[0], more, size, a[3], a[4], a[5], a[6]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(conv2d_input_backward) = {
    .schema = "conv2d_input_backward(Tensor grad_output, Tensor weight, int[] input_size, "
              "int[2] stride=1, int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor",
    .doc =
        "The gradient of conv2d's input, of sizes input_size, from that of its output: the transposed "
        "convolution with the same weight.",
    .samples = "t(2, 4, 5, 6), t(4, 3, 3, 3), [2, 3, 5, 6], padding=1\n"
               "t(2, 6, 3, 3), t(6, 2, 3, 3), [2, 4, 6, 5], 2, 1, groups=2\n"
               "t(2, 4, 4, 5), t(4, 3, 1, 1), [2, 3, 4, 5]",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
};
