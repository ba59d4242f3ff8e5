/* tensor/ops/shape/stack.c -- core::stack: joins tensors of equal sizes along a new dimension. */
#include <string.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

/* The sizes and dtype of the result. */
static int find_whole(const char *name, const opscope_argument *list, int64_t dim_argument,
                      int *dim, int64_t *sizes, opscope_dtype *dtype)
{
    opscope_tensor *const *tensors = list->as.tensors;
    if (list->count == 0) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "%s: at least one tensor is needed",
                                   name);
    }
    const opscope_tensor *first = tensors[0];
    if (first->dims == OPSCOPE_DIM_LIMIT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: at most %d dimensions", name,
                                   OPSCOPE_DIM_LIMIT);
    }
    int status = opscope__wrap_dim(name, dim_argument, first->dims + 1, dim);
    if (status != OPSCOPE_OK) {
        return status;
    }
    *dtype = (opscope_dtype)first->dtype;
    for (uint32_t i = 1; i < list->count; i++) {
        *dtype = opscope_dtype_promote(*dtype, (opscope_dtype)tensors[i]->dtype);
        if (!opscope__same_sizes(first, tensors[i])) {
            return opscope_tensor_fail(
                OPSCOPE_ERROR_RUNTIME,
                "%s: all tensors have equal sizes, but tensor 0 has %s and tensor %u %s", name,
                opscope__shape_text(first).text, i, opscope__shape_text(tensors[i]).text);
        }
    }
    memcpy(sizes, opscope__sizes(first), (size_t)*dim * sizeof *sizes);
    sizes[*dim] = (int64_t)list->count;
    memcpy(sizes + *dim + 1, opscope__sizes(first) + *dim,
           (size_t)(first->dims - *dim) * sizeof *sizes);
    return OPSCOPE_OK;
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *const *tensors = arguments[0].as.tensors, *made;
    int64_t sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    opscope_dtype dtype = OPSCOPE_FLOAT32;
    int dim;
    int status = find_whole(opscope__call_name(call), &arguments[0], arguments[1].as.integer, &dim,
                            sizes, &dtype);
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(tensors[0]->dims + 1, sizes, dtype, &made);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    for (int i = 0; i < tensors[0]->dims; i++) {
        strides[i] = opscope__strides(made)[i + (i >= dim)];
    }
    for (uint32_t i = 0; i < arguments[0].count && status == OPSCOPE_OK; i++) {
        opscope_tensor *part;
        status = opscope__tensor_view(made, tensors[i]->dims, opscope__sizes(tensors[i]), strides,
                                      i * opscope__strides(made)[dim], &part);
        if (status == OPSCOPE_OK) {
            status = opscope__copy(part, tensors[i]);
            opscope_tensor_release(part);
        }
    }
    return opscope__tensor_finish(status, made, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    for (size_t i = 0; i < backward->input_count; i++) {
        struct opscope__formula part = {0};
        if (backward->wanted[i]) {
            gradients[i] =
                opscope__keep(opscope__f(&part, "select", opscope__T(backward->gradients[0]),
                                         backward->arguments[1], opscope__I((int64_t)i)));
        }
        f.status = f.status == OPSCOPE_OK ? opscope__formula_end(&part, NULL, 0) : f.status;
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(stack) = {
    .schema = "stack(Tensor[] tensors, int dim=0) -> Tensor",
    .doc = "Joins tensors of equal sizes along a new dimension dim; dtypes promote. @s \"%s: all "
           "tensors have equal sizes, but tensor 0 has %s and tensor %u %s\" @t \"%s: all tensors "
           "must have equal sizes, but tensor 0 has %s and tensor %u %s\"",
    .samples = "[t(2, 3), t(2, 3)], 0\n"
               "[t(2, 3), t(2, 3), t(2, 3)], -1\n"
               "[t(), t()]",
    .forward = forward,
    .backward = backward,
};
