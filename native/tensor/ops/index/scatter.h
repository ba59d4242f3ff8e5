/* tensor/ops/index/scatter.h -- shared by scatter and scatter_add: puts elements at positions given
 * by indices. */
#ifndef OPSCOPE_TENSOR_OPS_INDEX_SCATTER_H
#define OPSCOPE_TENSOR_OPS_INDEX_SCATTER_H

#include "tensor/ops/index/gather_index.h"

/* Processes a row: from element j of `in`, with elements `from` apart, to `out` at j * step +
 * index[j] * stride. */
typedef void (*opscope__scatter_loop)(char *out, const char *in, const int64_t *index,
                                      int64_t count, int64_t step, int64_t stride, int64_t from);

/* Arguments are self, dim, index and the tensor src. */
static inline int opscope__scatter(const struct opscope__call *call,
                                   const opscope__scatter_loop *placings,
                                   const opscope_argument *arguments, opscope_tensor **out)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor, *made;
    const opscope_tensor *index = arguments[2].as.tensor, *source = arguments[3].as.tensor;
    bool fits = source->dtype == self->dtype && source->dims == index->dims &&
                placings[self->dtype] != NULL;
    for (int i = 0; i < index->dims && fits; i++) {
        fits = opscope__sizes(index)[i] <= opscope__sizes(source)[i];
    }
    if (!fits) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: %s src of sizes %s, index of sizes %s, self of %s: expected one dtype, and "
            "src nowhere smaller than the index",
            name, opscope_dtype_name((opscope_dtype)source->dtype),
            opscope__shape_text(source).text, opscope__shape_text(index).text,
            opscope_dtype_name((opscope_dtype)self->dtype));
    }
    int status = opscope__changed(call, self, &made);
    struct opscope__gather_index p = {0};
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__gather_index_of(name, made, arguments[1].as.integer, index, &p);
    if (status != OPSCOPE_OK) {
        opscope_tensor_release(made);
        return status;
    }
    int64_t item = (int64_t)opscope_dtype_bytes((opscope_dtype)self->dtype);
    int64_t from = source->dims > 0 ? opscope__strides(source)[source->dims - 1] : 0;
    for (int64_t row = 0; row < p.rows; row++) {
        placings[self->dtype](
            made->data + opscope__row_start(made, opscope__sizes(p.index), p.dim, row) * item,
            source->data + opscope__row_start(source, opscope__sizes(p.index), -1, row) * item,
            (const int64_t *)(const void *)p.index->data + row * p.width, p.width, p.step, p.stride,
            from);
    }
    opscope_tensor_release(p.index);
    *out = made;
    return OPSCOPE_OK;
}

/* The gradient of src: the gradient at its positions, and zero where src exceeds the index. */
static inline opscope_tensor *opscope__placed_gradient(struct opscope__formula *f,
                                                       const struct opscope__backward *backward)
{
    const opscope_tensor *index = backward->inputs[1], *source = backward->inputs[2];
    opscope_tensor *taken = opscope__f(f, "gather", opscope__T(backward->gradients[0]),
                                       backward->arguments[1], backward->arguments[2]);
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    memcpy(sizes, opscope__sizes(index), (size_t)index->dims * sizeof *sizes);
    for (int i = 0; i < index->dims; i++) {
        if (sizes[i] != opscope__sizes(source)[i]) {
            sizes[i] = opscope__sizes(source)[i];
            taken = opscope__f(f, "slice_backward", opscope__T(taken),
                               opscope__L(sizes, index->dims), opscope__I(i), opscope__I(0),
                               opscope__I(opscope__sizes(index)[i]), opscope__I(1));
        }
    }
    return taken;
}

#endif
