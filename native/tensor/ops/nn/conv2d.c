/* tensor/ops/nn/conv2d.c -- core::conv2d: convolutions of images. */
#include "tensor/kernels/convert.h"
#include "tensor/ops/nn/direct.h"
#include "tensor/ops/nn/phase_outputs.h"
#include "tensor/ops/nn/patch_matrix.h"

/* Everything is contiguous. */
struct work {
    const struct opscope__convolution *c;
    struct opscope__strips strips;
    char *input;
    const char *weight;
    const char *bias; /* NULL: no bias */
    char *output;
    int status; /* any part that fails writes it, relaxed; the caller reads it after the parts have
                   been joined */
};

/* Sets the strip's outputs of one group to the bias. */
static void spread_bias(const struct work *w, int64_t group, char *output, int64_t count)
{
    const struct opscope__convolution *c = w->c;
    int64_t plane = c->out_size[0] * c->out_size[1];
    for (int64_t o = 0; o < c->out; o++) {
        int64_t at = group * c->out + o;
        if (c->dtype == OPSCOPE_FLOAT32) {
            const float value = ((const float *)(const void *)w->bias)[at];
            float *to = (float *)(void *)output + o * plane;
            for (int64_t i = 0; i < count; i++) {
                to[i] = value;
            }
        } else {
            const double value = ((const double *)(const void *)w->bias)[at];
            double *to = (double *)(void *)output + o * plane;
            for (int64_t i = 0; i < count; i++) {
                to[i] = value;
            }
        }
    }
}

/* Units are the strips of all groups of all images. */
static void part(int64_t begin, int64_t end, void *arg)
{
    struct work *w = arg;
    const struct opscope__convolution *c = w->c;
    const struct opscope__strips *s = &w->strips;
    bool is_bare = opscope__is_bare(c);
    int64_t item = (int64_t)opscope_dtype_bytes(c->dtype);
    int64_t height = c->in * c->window[0].kernel * c->window[1].kernel;
    int64_t plane = c->out_size[0] * c->out_size[1], in_plane = c->size[0] * c->size[1];
    char *room = is_bare ? NULL : opscope__patches_take(s, c->in);
    int status = room != NULL || is_bare ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
    for (int64_t unit = begin; unit < end && status == OPSCOPE_OK; unit++) {
        struct opscope__strip strip = opscope__strip_at(s, unit);
        int64_t slice = strip.image * c->groups + strip.group;
        int64_t outputs = strip.rows * strip.columns, at = strip.y * c->out_size[1] + strip.x;
        char *image = w->input + strip.group * c->in * in_plane * item;
        char *output = w->output + (slice * c->out * plane + at) * item;
        if (c->dtype == OPSCOPE_FLOAT32 && !is_bare) {
            opscope__fill_float32(s, (float *)(void *)image, &strip, c->in, (float *)(void *)room);
        } else if (!is_bare) {
            opscope__fill_float64(s, (double *)(void *)image, &strip, c->in,
                                  (double *)(void *)room);
        }
        if (w->bias != NULL) {
            spread_bias(w, strip.group, output, outputs);
        }
        struct opscope__matrix patches = {
            is_bare ? w->input + (slice * c->in * in_plane + at) * item : room, height, outputs,
            is_bare ? in_plane : s->pitch, 1};
        struct opscope__matrix weight = {w->weight + strip.group * c->out * height * item, c->out,
                                         height, height, 1};
        status =
            opscope__gemm(c->name, c->dtype, &weight, &patches, output, plane, w->bias != NULL);
    }
    free(room);
    if (status != OPSCOPE_OK) {
        opscope__store_relaxed(&w->status, status);
    }
}

static int check_bias(const struct opscope__convolution *c, const opscope_tensor *bias)
{
    if (bias->dims != 1 || opscope__sizes(bias)[0] != c->groups * c->out ||
        bias->dtype != c->dtype) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: bias is %s of sizes %s: expected %s of sizes [%lld], one for each "
            "output channel",
            c->name, opscope_dtype_name((opscope_dtype)bias->dtype), opscope__shape_text(bias).text,
            opscope_dtype_name(c->dtype), (long long)(c->groups * c->out));
    }
    return OPSCOPE_OK;
}

static int convolve(const struct opscope__convolution *c, char *input, const char *weight,
                    const char *bias, char *output)
{
    int64_t area = c->window[0].kernel * c->window[1].kernel;
    if (opscope__image_phases_fit(c)) {
        return opscope__convolve_phases(c, input, weight, bias, output);
    }
    if (opscope__direct_gains(c)) {
        struct opscope__weight read = {weight, c->out * c->in * area, c->in * area, area, 1};
        return opscope__convolve(c, input, read, bias, output);
    }
    struct work w = {c, opscope__product_strips(c), input, weight, bias, output, OPSCOPE_OK};
    opscope__parallel(opscope__strip_count(&w.strips), opscope__strips_worth_a_thread(&w.strips),
                      part, &w);
    return opscope__products_done(c, opscope__load_relaxed(&w.status));
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    bool has_bias = arguments[2].kind != OPSCOPE_ARGUMENT_NONE;
    opscope_tensor *input = arguments[0].as.tensor, *flat = NULL, *weight = NULL, *bias = NULL;
    opscope_tensor *made = NULL;
    struct opscope__convolution c;
    int64_t sizes[4];
    int status =
        opscope__convolution_read(opscope__call_name(call), opscope__outline_of(input),
                                  opscope__outline_of(arguments[1].as.tensor), &arguments[3], &c);
    if (status == OPSCOPE_OK && has_bias) {
        status = check_bias(&c, arguments[2].as.tensor);
    }
    if (status == OPSCOPE_OK && has_bias) {
        status = opscope__contiguous(arguments[2].as.tensor, &bias);
    }
    if (status == OPSCOPE_OK) {
        opscope__convolution_sizes(&c, sizes);
        status = opscope__tensor_empty(c.dims, sizes, c.dtype, &made);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(input, &flat);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(arguments[1].as.tensor, &weight);
    }
    if (status == OPSCOPE_OK && made->count > 0) {
        status = convolve(&c, flat->data, weight->data, has_bias ? bias->data : NULL, made->data);
    }
    opscope_tensor_release(flat);
    opscope_tensor_release(weight);
    opscope_tensor_release(bias);
    return opscope__tensor_finish(status, made, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_argument *a = backward->arguments;
    const opscope_tensor *input = backward->inputs[0], *weight = backward->inputs[1];
    opscope_tensor *grad = backward->gradients[0];
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(opscope__f(
            &f, "conv2d_input_backward", opscope__T(grad), opscope__T(backward->inputs[1]),
            opscope__L(opscope__sizes(input), input->dims), a[3], a[4], a[5], a[6]));
    }
    if (backward->wanted[1]) {
        gradients[1] = opscope__keep(opscope__f(
            &f, "conv2d_weight_backward", opscope__T(grad), opscope__T(backward->inputs[0]),
            opscope__L(opscope__sizes(weight), 4), a[3], a[4], a[5], a[6]));
    }
    if (backward->wanted[2]) {
        const int64_t dims[] = {-1, -2, 0};
        gradients[2] = opscope__keep(
            opscope__f(&f, "sum", opscope__T(grad), opscope__L(dims, input->dims == 4 ? 3 : 2)));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(conv2d) = {
    .schema = "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
              "int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor",
    .doc = "Slides each kernel of weight over input, padded with zeros, and adds bias. Floats "
           "[batch, in, height, width] or [in, height, width], [out, in / groups, kernel "
           "height, kernel width] and [out] give [batch, out, output height, output width]. An "
           "output size is (size + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded "
           "down. The channels of each group use only that group's kernels.",
    .samples = "t(2, 3, 5, 6), t(4, 3, 3, 3), t(4)\n"
               "t(3, 5, 6), t(4, 3, 3, 2), t(4), padding=1\n"
               "t(2, 4, 6, 5), t(6, 2, 3, 3), t(6), stride=2, padding=1, groups=2\n"
               "t(2, 2, 7, 8), t(3, 2, 2, 3), None, [1, 2], [2, 1], [3, 2]\n"
               "t(2, 3, 4, 5), t(4, 3, 1, 1), t(4)\n"
               "t(1, 2, 4, 5), t(3, 2, 1, 1), stride=2\n"
               "t(2, 3, 4, 4), t(6, 1, 3, 3), padding=2, groups=3\n"
               "t(1, 1, 3, 700), t(2, 1, 2, 3), t(2), padding=[1, 4]\n"
               "t(0, 3, 5, 6), t(4, 3, 3, 3), t(4)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
    .saves_for = {2, 1},
};
