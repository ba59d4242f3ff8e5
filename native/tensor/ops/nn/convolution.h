/* tensor/ops/nn/convolution.h -- what a convolution is: its sizes and settings, and their checks.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_CONVOLUTION_H
#define OPSCOPE_TENSOR_OPS_NN_CONVOLUTION_H

#include <string.h>

#include "tensor/ops/nn/window.h"

struct opscope__convolution {
    const char *name;
    opscope_dtype dtype;
    int dims; /* of input and output: 3 without a batch, else 4 */
    int64_t batch, groups;
    int64_t in, out; /* channels of one group */
    int64_t size[2], out_size[2];
    struct opscope__window window[2];
};

static inline int64_t opscope__at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

/* The sizes and dtype of an existing or future tensor. */
struct opscope__outline {
    opscope_dtype dtype;
    int dims;
    const int64_t *sizes;
};

static inline struct opscope__outline opscope__outline_of(const opscope_tensor *tensor)
{
    return (struct opscope__outline){(opscope_dtype)tensor->dtype, tensor->dims,
                                     opscope__sizes(tensor)};
}

/* From a list of sizes; a longer list is cut. */
static inline struct opscope__outline opscope__outline_from(const opscope_argument *list,
                                                            opscope_dtype dtype)
{
    return (struct opscope__outline){dtype, (int)opscope__at_most(list->count, OPSCOPE_DIM_LIMIT),
                                     list->as.integers};
}

static inline bool opscope__fit_together(const struct opscope__outline *input,
                                         const struct opscope__outline *weight, int64_t groups)
{
    if ((input->dims != 3 && input->dims != 4) || weight->dims != 4 ||
        input->dtype != weight->dtype ||
        (input->dtype != OPSCOPE_FLOAT32 && input->dtype != OPSCOPE_FLOAT64) || groups < 1) {
        return false;
    }
    int64_t channels = input->sizes[input->dims - 3];
    return channels >= 0 && weight->sizes[0] >= 0 && channels % groups == 0 &&
           channels / groups == weight->sizes[1] && weight->sizes[0] % groups == 0;
}

/* `settings` are stride, padding, dilation and groups. */
static inline int opscope__convolution_read(const char *name, struct opscope__outline input,
                                            struct opscope__outline weight,
                                            const opscope_argument *settings,
                                            struct opscope__convolution *out)
{
    int64_t groups = settings[3].as.integer,
            weight_bytes = (int64_t)opscope_dtype_bytes(weight.dtype);
    if (!opscope__fit_together(&input, &weight, groups)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: input %s of sizes %s, weight %s of sizes %s, groups %lld: expected floats of one dtype, "
            "[batch, in, height, width] or [in, height, width], [out, in / groups, kernel height, kernel "
            "width], and groups that divide in and out",
            name, opscope_dtype_name(input.dtype),
            opscope__sizes_text(input.dims, input.sizes).text, opscope_dtype_name(weight.dtype),
            opscope__sizes_text(weight.dims, weight.sizes).text, (long long)groups);
    }
    struct opscope__convolution c = {.name = name, .dtype = input.dtype, .dims = input.dims};
    opscope_argument kernel = opscope__L(weight.sizes + 2, 2);
    int status =
        opscope__window_read(name, &kernel, &settings[0], &settings[1], &settings[2], c.window);
    for (int i = 0; i < 2 && status == OPSCOPE_OK; i++) {
        c.size[i] = input.sizes[input.dims - 2 + i];
        status = opscope__window_count(name, &c.window[i], c.size[i], false, &c.out_size[i]);
    }
    for (int i = 0; i < 4 && status == OPSCOPE_OK; i++) {
        if (__builtin_mul_overflow(weight_bytes, weight.sizes[i], &weight_bytes)) {
            status =
                opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: a weight of sizes %s exceeds memory",
                                    name, opscope__sizes_text(weight.dims, weight.sizes).text);
        }
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    c.batch = input.dims == 4 ? input.sizes[0] : 1;
    c.groups = groups;
    c.in = weight.sizes[1];
    c.out = weight.sizes[0] / groups;
    *out = c;
    return OPSCOPE_OK;
}

/* True if the image can be used directly as its patches. */
static inline bool opscope__is_bare(const struct opscope__convolution *c)
{
    const struct opscope__window *high = &c->window[0], *wide = &c->window[1];
    return high->kernel == 1 && wide->kernel == 1 && high->stride == 1 && wide->stride == 1 &&
           high->padding == 0 && wide->padding == 0;
}

/* The output's sizes, as many as dims. */
static inline void opscope__convolution_sizes(const struct opscope__convolution *c, int64_t *sizes)
{
    const int64_t all[] = {c->batch, c->groups * c->out, c->out_size[0], c->out_size[1]};
    memcpy(sizes, all + 4 - c->dims, (size_t)c->dims * sizeof *sizes);
}

/* Fails unless the gradient has the output's dtype and sizes. */
static inline int opscope__check_grad_output(const struct opscope__convolution *c,
                                             const opscope_tensor *grad)
{
    int64_t sizes[4];
    opscope__convolution_sizes(c, sizes);
    if (grad->dims != c->dims || grad->dtype != c->dtype ||
        memcmp(opscope__sizes(grad), sizes, (size_t)c->dims * sizeof *sizes) != 0) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: grad_output is %s of sizes %s, the convolution gives %s of sizes %s", c->name,
            opscope_dtype_name((opscope_dtype)grad->dtype), opscope__shape_text(grad).text,
            opscope_dtype_name(c->dtype), opscope__sizes_text(c->dims, sizes).text);
    }
    return OPSCOPE_OK;
}

#endif
