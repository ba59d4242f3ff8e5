/* tensor/ops/nn/window.h -- a window that slides over images: its settings, its checks, and the
 * number of its positions.
 *
 * Shared by convolution and pooling. Dimension 0 is the height, 1 the width. Images are [channels,
 * height, width], with or without a batch before.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_WINDOW_H
#define OPSCOPE_TENSOR_OPS_NN_WINDOW_H

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

/* Along one dimension. */
struct opscope__window {
    int64_t kernel, stride, padding, dilation;
};

/* Reads two numbers of at least `least` that fit int32, so that products of two cannot overflow. */
static inline int opscope__two_numbers(const char *name, const char *what,
                                       const opscope_argument *argument, int64_t least,
                                       int64_t *out)
{
    const int64_t *list = argument->as.integers;
    for (uint32_t i = 0; i < 2; i++) {
        if (argument->count != 2 || list[i] < least || list[i] > INT32_MAX) {
            return opscope_tensor_fail(
                OPSCOPE_ERROR_VALUE, "%s: %s is %s: expected two numbers, each %lld to %d", name,
                what,
                opscope__sizes_text((int)(argument->count < 8 ? argument->count : 8), list).text,
                (long long)least, INT32_MAX);
        }
        out[i] = list[i];
    }
    return OPSCOPE_OK;
}

/* dilation NULL: 1. A stride of None: the kernel's size. */
static inline int opscope__window_read(const char *name, const opscope_argument *kernel,
                                       const opscope_argument *stride,
                                       const opscope_argument *padding,
                                       const opscope_argument *dilation,
                                       struct opscope__window *out)
{
    int64_t kernels[2], strides[2], paddings[2], dilations[2] = {1, 1};
    int status = opscope__two_numbers(name, "kernel_size", kernel, 1, kernels);
    if (status == OPSCOPE_OK) {
        bool is_own = stride->kind == OPSCOPE_ARGUMENT_INTS && stride->count > 0;
        status = opscope__two_numbers(name, "stride", is_own ? stride : kernel, 1, strides);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__two_numbers(name, "padding", padding, 0, paddings);
    }
    if (status == OPSCOPE_OK && dilation != NULL) {
        status = opscope__two_numbers(name, "dilation", dilation, 1, dilations);
    }
    for (int i = 0; i < 2 && status == OPSCOPE_OK; i++) {
        out[i] = (struct opscope__window){kernels[i], strides[i], paddings[i], dilations[i]};
    }
    return status;
}

/* The number of elements from the window's first to its last. */
static inline int64_t opscope__window_span(const struct opscope__window *window)
{
    return (window->kernel - 1) * window->dilation + 1;
}

/* The number of window positions in `size` elements with the padding; with `ceil`, including one
 * that begins inside and extends past the end. Fails if there is none. */
static inline int opscope__window_count(const char *name, const struct opscope__window *window,
                                        int64_t size, bool ceil, int64_t *out)
{
    int64_t span = opscope__window_span(window), padded;
    if (__builtin_add_overflow(size, 2 * window->padding, &padded)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "%s: an image of size %lld with a padding of "
                                   "%lld is too large",
                                   name, (long long)size, (long long)window->padding);
    }
    int64_t room = padded - span;
    if (room < 0) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: a kernel of size %lld with a dilation of %lld spans %lld elements, more than the image: "
            "%lld with the padding of %lld at both ends",
            name, (long long)window->kernel, (long long)window->dilation, (long long)span,
            (long long)padded, (long long)window->padding);
    }
    int64_t count = room / window->stride + 1;
    if (ceil && room % window->stride != 0 && count * window->stride < size + window->padding) {
        count++;
    }
    *out = count;
    return OPSCOPE_OK;
}

/* The smallest i with i * stride >= distance, within [0, count]. */
static inline int64_t opscope__first_at(int64_t distance, int64_t stride, int64_t count)
{
    int64_t first = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    return first < count ? first : count;
}

#endif
