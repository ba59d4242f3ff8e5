/* tensor/ops/nn/patch_matrix.h -- the patches of a convolution as a matrix, for products by a BLAS.
 *
 * A kernel with a single position needs no copy of the image.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_PATCH_MATRIX_H
#define OPSCOPE_TENSOR_OPS_NN_PATCH_MATRIX_H

#include "tensor/kernels/blas.h"
#include "tensor/kernels/parallel.h"
#include "tensor/ops/nn/strips.h"

enum {
    OPSCOPE__PRODUCT_WORK = 1000000, /* multiplications up to which OpenBLAS does not pack */
};

/* Strips whose products with all kernels OpenBLAS does not pack. */
static inline struct opscope__strips opscope__product_strips(const struct opscope__convolution *c)
{
    int64_t work = c->in * c->window[0].kernel * c->window[1].kernel * c->out;
    return opscope__strips_of(c, c->in, OPSCOPE__PRODUCT_WORK / (work > 0 ? work : 1), 1, false);
}

/* The number of strips that make waking a thread worthwhile. */
static inline int64_t opscope__strips_worth_a_thread(const struct opscope__strips *s)
{
    const struct opscope__convolution *c = s->c;
    const int64_t multiplications = 16; /* in the time of one memory-bound addition */
    int64_t work = c->in * c->window[0].kernel * c->window[1].kernel * (c->out + 1) * s->rows *
                   s->columns / multiplications;
    return OPSCOPE__GRAIN / (work + 1) + 1;
}

/* Reports a part's failure on the calling thread. */
static inline int opscope__products_done(const struct opscope__convolution *c, int status)
{
    return status == OPSCOPE_OK
               ? status
               : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY,
                                     "%s: out of memory for a strip of patches", c->name);
}

#endif
