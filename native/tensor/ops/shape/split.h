/* tensor/ops/shape/split.h -- parts of a tensor, each a view made by an operator and appended to a
 * list of outputs. */
#ifndef OPSCOPE_TENSOR_OPS_SHAPE_SPLIT_H
#define OPSCOPE_TENSOR_OPS_SHAPE_SPLIT_H

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static inline int opscope__append_piece(struct opscope__call *call, const char *name,
                                        const opscope_argument *arguments, size_t count)
{
    struct opscope__formula f = {0};
    opscope_tensor *piece = opscope__keep(opscope__do(&f, name, arguments, count));
    int status = opscope__formula_end(&f, &piece, 1);
    return status == OPSCOPE_OK ? opscope__call_append(call, piece) : status;
}

/* Appends `count` parts of dimension `dim`, each of `size` elements, or of the lengths in `sizes`
 * unless it is NULL; the last one ends with the dimension. */
static inline int opscope__append_stretches(struct opscope__call *call, opscope_tensor *self,
                                            int dim, int64_t count, int64_t size,
                                            const int64_t *sizes)
{
    int status = OPSCOPE_OK;
    int64_t start = 0, whole = opscope__sizes(self)[dim];
    for (int64_t i = 0; i < count && status == OPSCOPE_OK; i++) {
        int64_t end = start + (sizes != NULL ? sizes[i] : size);
        end = end < whole ? end : whole;
        const opscope_argument arguments[] = {opscope__T(self), opscope__I(dim), opscope__I(start),
                                              opscope__I(end)};
        status = opscope__append_piece(call, "slice", arguments, 4);
        start = end;
    }
    return status;
}

/* Like opscope__wrap_dim, but fails for a tensor without dimensions, which cannot be split. */
static inline int opscope__cut_dim(const char *name, const opscope_tensor *self, int64_t dim,
                                   int *out)
{
    if (self->dims == 0) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: a tensor without dimensions cannot be split", name);
    }
    return opscope__wrap_dim(name, dim, self->dims, out);
}

#endif
