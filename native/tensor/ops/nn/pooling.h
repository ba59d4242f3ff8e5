/* tensor/ops/nn/pooling.h -- shared by the pools: processes planes of images in parallel.
 *
 * A pool turns each plane [height, width] of its input into a smaller plane, whatever dimensions
 * come before.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_POOLING_H
#define OPSCOPE_TENSOR_OPS_NN_POOLING_H

#include "tensor/kernels/convert.h"
#include "tensor/kernels/parallel.h"
#include "tensor/ops/nn/window.h"

struct opscope__pooling {
    const char *name;
    opscope_dtype dtype;
    int dims;
    const int64_t *sizes; /* of the input */
    int64_t planes;
    int64_t size[2], out_size[2];
};

/* Reads a pool over images of these sizes; the caller sets out_size. */
static inline int opscope__pooling_read(const char *name, int dims, const int64_t *sizes,
                                        opscope_dtype dtype, struct opscope__pooling *out)
{
    bool fits = (dims == 3 || dims == 4) && (dtype == OPSCOPE_FLOAT32 || dtype == OPSCOPE_FLOAT64);
    for (int i = dims - 3; i < dims && fits; i++) {
        fits = sizes[i] > 0;
    }
    if (!fits) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: %s of sizes %s: expected floats [batch, channels, height, width] or "
            "[channels, height, width], of which only the batch may be 0",
            name, opscope_dtype_name(dtype), opscope__sizes_text(dims, sizes).text);
    }
    *out = (struct opscope__pooling){name,
                                     dtype,
                                     dims,
                                     sizes,
                                     opscope__count_of(dims - 2, sizes),
                                     {sizes[dims - 2], sizes[dims - 1]},
                                     {0, 0}};
    return OPSCOPE_OK;
}

/* Computes the number of windows; `kernel`, `stride`, `padding` and `dilation` as in window.h. */
static inline int opscope__pooling_slide(struct opscope__pooling *pooling,
                                         struct opscope__window *windows, bool ceil)
{
    for (int i = 0; i < 2; i++) {
        if (2 * windows[i].padding > windows[i].kernel) {
            return opscope_tensor_fail(
                OPSCOPE_ERROR_VALUE,
                "%s: a padding of %lld is more than half of the kernel's size %lld", pooling->name,
                (long long)windows[i].padding, (long long)windows[i].kernel);
        }
        int status = opscope__window_count(pooling->name, &windows[i], pooling->size[i], ceil,
                                           &pooling->out_size[i]);
        if (status != OPSCOPE_OK) {
            return status;
        }
    }
    return OPSCOPE_OK;
}

static inline void opscope__pooling_sizes(const struct opscope__pooling *pooling, int64_t *sizes)
{
    for (int i = 0; i < pooling->dims - 2; i++) {
        sizes[i] = pooling->sizes[i];
    }
    sizes[pooling->dims - 2] = pooling->out_size[0];
    sizes[pooling->dims - 1] = pooling->out_size[1];
}

/* Fails unless the gradient (or another tensor of the output's sizes) matches the pool's output. */
static inline int opscope__pooling_check_output(const struct opscope__pooling *pooling,
                                                const char *what, opscope_dtype dtype,
                                                const opscope_tensor *tensor)
{
    int64_t sizes[4];
    opscope__pooling_sizes(pooling, sizes);
    bool fits = tensor->dims == pooling->dims && tensor->dtype == dtype;
    for (int i = 0; i < tensor->dims && fits; i++) {
        fits = opscope__sizes(tensor)[i] == sizes[i];
    }
    return fits ? OPSCOPE_OK
                : opscope_tensor_fail(
                      OPSCOPE_ERROR_RUNTIME, "%s: %s is %s of sizes %s: expected %s of sizes %s",
                      pooling->name, what, opscope_dtype_name((opscope_dtype)tensor->dtype),
                      opscope__shape_text(tensor).text, opscope_dtype_name(dtype),
                      opscope__sizes_text(pooling->dims, sizes).text);
}

/* Runs `part` over the planes; `cost` is that of an element of the larger plane, in additions. */
static inline void opscope__each_plane(const struct opscope__pooling *pooling, int64_t cost,
                                       opscope__part part, void *arg)
{
    int64_t in = pooling->size[0] * pooling->size[1];
    int64_t out = pooling->out_size[0] * pooling->out_size[1];
    int64_t work = (in > out ? in : out) * cost;
    opscope__parallel(pooling->planes, OPSCOPE__GRAIN / (work + 1) + 1, part, arg);
}

#endif
