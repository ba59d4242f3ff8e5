/* tensor/ops/nn/max_pool2d_backward.c -- core::max_pool2d_backward: passes gradients to the
 * elements that were the maxima. */
#include <string.h>

#include "base/atomics.h"
#include "tensor/ops/nn/pooling.h"

struct work {
    struct opscope__pooling pooling;
    const char *grad;
    const int32_t *places;
    char *input;    /* the result */
    bool has_stray; /* an index lies outside of its plane. Any part writes it, relaxed; the caller
                       reads it after they joined */
};

#define PLANES(name, type)                                                                         \
    static void name(int64_t begin, int64_t end, void *arg)                                        \
    {                                                                                              \
        struct work *w = arg;                                                                      \
        const int64_t in = w->pooling.size[0] * w->pooling.size[1];                                \
        const int64_t out = w->pooling.out_size[0] * w->pooling.out_size[1];                       \
        memset((type *)(void *)w->input + begin * in, 0,                                           \
               (size_t)((end - begin) * in) * sizeof(type));                                       \
        for (int64_t i = begin; i < end; i++) {                                                    \
            type *to = (type *)(void *)w->input + i * in;                                          \
            const type *grad = (const type *)(const void *)w->grad + i * out;                      \
            const int32_t *places = w->places + i * out;                                           \
            for (int64_t j = 0; j < out; j++) {                                                    \
                if (places[j] >= 0 && places[j] < in) {                                            \
                    to[places[j]] += grad[j];                                                      \
                } else if (places[j] != -1) {                                                      \
                    opscope__store_relaxed(&w->has_stray, true);                                   \
                    return;                                                                        \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

PLANES(planes_float32, float)
PLANES(planes_float64, double)

/* Takes the output's sizes from grad_output: the indices must have the same. */
static int read(const char *name, const opscope_argument *arguments, struct work *w)
{
    const opscope_tensor *grad = arguments[0].as.tensor;
    const opscope_argument *list = &arguments[2];
    int dims = list->count <= OPSCOPE_DIM_LIMIT ? (int)list->count : OPSCOPE_DIM_LIMIT;
    int status = opscope__pooling_read(name, dims, list->as.integers, (opscope_dtype)grad->dtype,
                                       &w->pooling);
    if (status == OPSCOPE_OK && grad->dims == dims) {
        w->pooling.out_size[0] = opscope__sizes(grad)[dims - 2];
        w->pooling.out_size[1] = opscope__sizes(grad)[dims - 1];
    }
    if (status == OPSCOPE_OK) {
        status = opscope__pooling_check_output(&w->pooling, "grad_output", w->pooling.dtype, grad);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__pooling_check_output(&w->pooling, "indices", OPSCOPE_INT32,
                                               arguments[1].as.tensor);
    }
    return status;
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    struct work w = {.has_stray = false};
    opscope_tensor *grad = NULL, *places = NULL, *made = NULL;
    int status = read(opscope__call_name(call), arguments, &w);
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(arguments[0].as.tensor, &grad);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(arguments[1].as.tensor, &places);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(w.pooling.dims, w.pooling.sizes, w.pooling.dtype, &made);
    }
    if (status == OPSCOPE_OK) {
        w.grad = grad->data;
        w.places = (const int32_t *)(const void *)places->data;
        w.input = made->data;
        opscope__each_plane(&w.pooling, 2,
                            w.pooling.dtype == OPSCOPE_FLOAT32 ? planes_float32 : planes_float64,
                            &w);
        if (opscope__load_relaxed(&w.has_stray)) {
            status = opscope_tensor_fail(
                OPSCOPE_ERROR_INDEX, "%s: indices point outside of images of %lld by %lld elements",
                w.pooling.name, (long long)w.pooling.size[0], (long long)w.pooling.size[1]);
        } else {
            outputs[0] = opscope_tensor_retain(made);
        }
    }
    opscope_tensor_release(grad);
    opscope_tensor_release(places);
    opscope_tensor_release(made);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *images = backward->gradients[0], *places = backward->inputs[1];
    const opscope_argument last = opscope__I(-1), flat[] = {opscope__I(-2), last};
    opscope_tensor *index = opscope__f(&f, "to", opscope__T(places), opscope__I(OPSCOPE_INT64));
    opscope_tensor *nowhere = opscope__f(&f, "lt", opscope__T(index), opscope__I(0));
    index = opscope__f(&f, "masked_fill", opscope__T(index), opscope__T(nowhere), opscope__I(0));
    index = opscope__f(&f, "flatten", opscope__T(index), flat[0], flat[1]);
    images = opscope__f(&f, "flatten", opscope__T(images), flat[0], flat[1]);
    opscope_tensor *found = opscope__f(&f, "gather", opscope__T(images), last, opscope__T(index));
    found = opscope__f(&f, "reshape", opscope__T(found),
                       opscope__L(opscope__sizes(places), places->dims));
    gradients[0] = opscope__keep(
        opscope__f(&f, "masked_fill", opscope__T(found), opscope__T(nowhere), opscope__I(0)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(max_pool2d_backward) = {
    .schema = "max_pool2d_backward(Tensor grad_output, Tensor indices, int[] input_size) -> Tensor",
    .doc = "Zeros of sizes input_size with each element of grad_output added at its index "
           "(int32) within its image, and nowhere for index -1: the gradient through "
           "max_pool2d.",
    .samples = "t(2, 3, 2, 3), index(20, 2, 3, 2, 3).astype('int32'), [2, 3, 4, 5]\n"
               "t(3, 2, 2), index(16, 3, 2, 2).astype('int32'), [3, 4, 4]",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 2,
};
