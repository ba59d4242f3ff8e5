/* tensor/ops/reduce/rows.h -- operators that work along one dimension, row by row.
 *
 * The dimension is moved to the end and made contiguous; the loop gets rows of `width` elements.
 * The output is contiguous with that dimension at the end; the result is a view of it in the
 * input's order.
 */
#ifndef OPSCOPE_TENSOR_OPS_REDUCE_ROWS_H
#define OPSCOPE_TENSOR_OPS_REDUCE_ROWS_H

#include "tensor/core/shape.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"
#include "tensor/kernels/parallel.h"
#include "tensor/ops/elementwise/loops.h"

/* Processes rows begin to end of `width` elements, from `inputs` to `out`. */
typedef void (*opscope__row_loop)(char *out, const char *const *inputs, int64_t begin, int64_t end,
                                  int64_t width);

struct opscope__rows {
    opscope__row_loop loop;
    char *out;
    const char *inputs[2];
    int64_t width;
};

static inline void opscope__rows_part(int64_t begin, int64_t end, void *arg)
{
    const struct opscope__rows *rows = arg;
    rows->loop(rows->out, rows->inputs, begin, end, rows->width);
}

/* The tensor with dimension `dim` and the last one exchanged. */
static inline int opscope__exchange_last(const opscope_tensor *tensor, int dim,
                                         opscope_tensor **out)
{
    int64_t shape[2 * OPSCOPE_DIM_LIMIT];
    int last = tensor->dims - 1;
    for (int i = 0; i < 2 * tensor->dims; i++) {
        int at = i % tensor->dims, from = at == dim ? last : at == last ? dim : at;
        shape[i] = tensor->shape[i - at + from];
    }
    return opscope__tensor_view(tensor, tensor->dims, shape, shape + tensor->dims, 0, out);
}

/* The tensor as rows along `dim`: contiguous, with that dimension last; a scalar as one row of one
 * element. */
static inline int opscope__as_rows(const opscope_tensor *tensor, int dim, opscope_tensor **out)
{
    opscope_tensor *view;
    int status = tensor->dims > 0
                     ? opscope__exchange_last(tensor, dim, &view)
                     : opscope__tensor_view(tensor, 1, &(int64_t){1}, &(int64_t){1}, 0, &view);
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(view, out);
        opscope_tensor_release(view);
    }
    return status;
}

/* Runs the loop over one or two inputs of the same sizes; the output has these sizes and that
 * dtype. */
static inline int opscope__along(opscope__row_loop loop, const opscope_tensor *first,
                                 const opscope_tensor *second, int dim, opscope_dtype dtype,
                                 int64_t cost, opscope_tensor **out)
{
    opscope_tensor *rows[2] = {NULL, NULL}, *made = NULL;
    int status = opscope__as_rows(first, dim, &rows[0]);
    if (status == OPSCOPE_OK && second != NULL) {
        status = opscope__as_rows(second, dim, &rows[1]);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(rows[0]->dims, opscope__sizes(rows[0]), dtype, &made);
    }
    if (status == OPSCOPE_OK && made->count > 0) {
        int64_t width = opscope__sizes(rows[0])[rows[0]->dims - 1];
        struct opscope__rows all = {
            loop, made->data, {rows[0]->data, rows[1] != NULL ? rows[1]->data : NULL}, width};
        opscope__parallel(made->count / width, OPSCOPE__GRAIN / (width * cost) + 1,
                          opscope__rows_part, &all);
    }
    if (status == OPSCOPE_OK) {
        status = first->dims > 0 ? opscope__exchange_last(made, dim, out)
                                 : opscope__tensor_view(made, 0, NULL, NULL, 0, out);
    }
    opscope_tensor_release(made);
    opscope_tensor_release(rows[0]);
    opscope_tensor_release(rows[1]);
    return status;
}

/* Processes `self` along dimension `dim` with the loop for its dtype. */
static inline int opscope__along_argument(const struct opscope__call *call,
                                          const opscope__row_loop *loops, opscope_tensor *self,
                                          opscope_tensor *second,
                                          const opscope_argument *dim_argument, int64_t cost,
                                          opscope_tensor **out)
{
    const char *name = opscope__call_name(call);
    int dim;
    int status = opscope__wrap_dim(name, dim_argument->as.integer, self->dims, &dim);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (loops[self->dtype] == NULL ||
        (second != NULL && (second->dtype != self->dtype || !opscope__same_sizes(self, second)))) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_TYPE,
            "%s: not defined for %s of sizes %s; floats expected, two tensors "
            "of one dtype and sizes",
            name, opscope_dtype_name((opscope_dtype)self->dtype), opscope__shape_text(self).text);
    }
    return opscope__along(loops[self->dtype], self, second, dim, (opscope_dtype)self->dtype, cost,
                          out);
}

#define OPSCOPE__FLOAT_ROWS(name)                                                                  \
    {[OPSCOPE_FLOAT32] = name##_float32, [OPSCOPE_FLOAT64] = name##_float64}

#endif
