/* tensor/ops/nn/conv2d_input_backward.c -- core::conv2d_input_backward: the gradient of the
 * images. */
#include "base/atomics.h"
#include "tensor/ops/nn/convolution.h"

struct work {
    const struct opscope__convolution *c;
    const char *grad;
    const char *weight; /* in the order of opscope__arranged_weight */
    char *input;        /* the result */
    int64_t blocks;     /* the channels of a group are split into these */
    int status; /* any part that fails writes it, relaxed; the caller reads it after the parts have
                   been joined */
};

/* Processes channels begin to end of a slice (one group of one image), strip by strip: the patches'
 * gradients are products, which are added at the patches' positions. */
static int slice_channels(const struct work *w, int64_t slice, int64_t begin, int64_t end,
                          char *room)
{
    const struct opscope__convolution *c = w->c;
    int64_t item = (int64_t)opscope_dtype_bytes(c->dtype), height = c->in * c->depth;
    int64_t plane = c->out_size[0] * c->out_size[1], group = slice % c->groups;
    int64_t channel_bytes = c->size[0] * c->size[1] * item;
    char *image = w->input + (slice * c->in + begin) * channel_bytes;
    if (!c->is_bare) {
        memset(image, 0, (size_t)((end - begin) * channel_bytes));
    }
    int status = OPSCOPE_OK;
    for (int64_t i = 0; i < c->strip_count && status == OPSCOPE_OK; i++) {
        struct opscope__strip strip = opscope__strip_at(c, i);
        int64_t columns = strip.rows * strip.columns, at = strip.y * c->out_size[1] + strip.x;
        int64_t stride = c->is_bare ? plane : strip.lines * strip.columns;
        char *patches = c->is_bare ? image + at * item : room;
        struct opscope__matrix grad = {w->grad + (slice * c->out * plane + at) * item, c->out,
                                       columns, plane, 1};
        if (c->turns > 1) {
            memset(room, 0, (size_t)((end - begin) * c->depth * stride * item));
        }
        for (int64_t turn = 0; turn < c->turns && status == OPSCOPE_OK; turn++) {
            int64_t first = (group * c->turns + turn) * c->out * height + begin * c->depth;
            struct opscope__matrix weight = {w->weight + first * item, (end - begin) * c->depth,
                                             c->out, 1, height};
            status = opscope__gemm(c->name, c->dtype, &weight, &grad,
                                   patches + turn * opscope__turn_shift(c, &strip) * item, stride,
                                   c->turns > 1);
        }
        if (!c->is_bare && c->dtype == OPSCOPE_FLOAT32) {
            opscope__spill_float32(c, (float *)(void *)image, &strip, end - begin,
                                   (float *)(void *)room);
        } else if (!c->is_bare) {
            opscope__spill_float64(c, (double *)(void *)image, &strip, end - begin,
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
    char *room = opscope__patches_take(c, (c->in + w->blocks - 1) / w->blocks);
    int status = room != NULL ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
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
        status = opscope__arranged_weight(&c, arguments[1].as.tensor, &weight);
    }
    if (status == OPSCOPE_OK && c.out == 0) {
        opscope__fill(made, &opscope__I(0));
    } else if (status == OPSCOPE_OK && made->count > 0) {
        struct work w = {&c, flat->data, weight->data, made->data, 1, OPSCOPE_OK};
        int64_t slices = c.batch * c.groups,
                grain = opscope__strips_worth_a_thread(&c) / c.strip_count + 1;
        if (grain == 1) { /* large images: if there are few, split their channels */
            w.blocks = opscope__at_most((16 + slices - 1) / slices, (c.in + 15) / 16);
        }
        opscope__parallel(slices * w.blocks, grain, part, &w);
        status = opscope__convolution_done(&c, opscope__load_relaxed(&w.status));
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
