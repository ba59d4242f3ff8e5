/* tensor/ops/nn/channels.h -- sums over the channels of a batch: [rows, channels, inner] elements.
 *
 * If inner is 1, the channels are adjacent and are summed together; else each channel is summed run
 * by run.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_CHANNELS_H
#define OPSCOPE_TENSOR_OPS_NN_CHANNELS_H

#include "tensor/ops/nn/norm.h"

enum { OPSCOPE__CHANNEL_BLOCK = 256, OPSCOPE__CHANNEL_STRETCH = 64 };

struct opscope__channels {
    int64_t rows, channels, inner;
};

static inline int opscope__channels_of(const char *name, const opscope_tensor *input,
                                       struct opscope__channels *out)
{
    if (input->dims < 2 || (input->dtype != OPSCOPE_FLOAT32 && input->dtype != OPSCOPE_FLOAT64)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: %s input of sizes %s; expected floats of sizes [batch, channels, ...]", name,
            opscope_dtype_name((opscope_dtype)input->dtype), opscope__shape_text(input).text);
    }
    out->rows = opscope__sizes(input)[0];
    out->channels = opscope__sizes(input)[1];
    out->inner = opscope__count_of(input->dims - 2, opscope__sizes(input) + 2);
    return OPSCOPE_OK;
}

/* Sums `expression` in a (of x), b (of y) and m (the channel's of `centers`), for at most
 * CHANNEL_BLOCK channels from begin to end; run_sum has the same expression for a run. */
#define OPSCOPE__CHANNEL_SUM(name, type, run_sum, expression)                                      \
    static void name(const struct opscope__channels *at, const type *x, const type *y,             \
                     const type *centers, int64_t begin, int64_t end, double *sums)                \
    {                                                                                              \
        int64_t count = end - begin;                                                               \
        for (int64_t c = 0; c < count; c++) {                                                      \
            sums[c] = 0;                                                                           \
        }                                                                                          \
        for (int64_t i = 0; i < at->rows && at->inner != 1; i++) {                                 \
            for (int64_t c = 0; c < count; c++) {                                                  \
                int64_t start = (i * at->channels + begin + c) * at->inner;                        \
                sums[c] +=                                                                         \
                    run_sum(x + start, y + start, y + start, centers[begin + c], at->inner);       \
            }                                                                                      \
        }                                                                                          \
        for (int64_t start = 0; start < at->rows && at->inner == 1;                                \
             start += OPSCOPE__CHANNEL_STRETCH) {                                                  \
            int64_t left = at->rows - start;                                                       \
            int64_t stop =                                                                         \
                left < OPSCOPE__CHANNEL_STRETCH ? at->rows : start + OPSCOPE__CHANNEL_STRETCH;     \
            type some[OPSCOPE__CHANNEL_BLOCK] = {0};                                               \
            for (int64_t i = start; i < stop; i++) {                                               \
                const type *u = x + i * at->channels + begin, *v = y + i * at->channels + begin;   \
                for (int64_t c = 0; c < count; c++) {                                              \
                    const type a = u[c], b = v[c], m = centers[begin + c];                         \
                    (void)b;                                                                       \
                    (void)m;                                                                       \
                    some[c] += (expression);                                                       \
                }                                                                                  \
            }                                                                                      \
            for (int64_t c = 0; c < count; c++) {                                                  \
                sums[c] += (double)some[c];                                                        \
            }                                                                                      \
        }                                                                                          \
    }

#endif
