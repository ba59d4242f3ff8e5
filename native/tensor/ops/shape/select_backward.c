/* tensor/ops/shape/select_backward.c -- core::select_backward: the gradient through select. */
#include <string.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *grad = arguments[0].as.tensor, *whole;
    int dim;
    int64_t sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    int dims = (int)arguments[1].count;
    int status = opscope__wrap_dim(name, arguments[2].as.integer, dims, &dim);
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(dims, arguments[1].as.integers, grad->dtype, &whole);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__fill(whole, &opscope__I(0));
    for (int i = 0; i < dims - 1; i++) {
        sizes[i] = opscope__sizes(whole)[i + (i >= dim)];
        strides[i] = opscope__strides(whole)[i + (i >= dim)];
    }
    int64_t index = arguments[3].as.integer, size = dims > 0 ? opscope__sizes(whole)[dim] : 0;
    index += index < 0 ? size : 0;
    opscope_tensor *part = NULL;
    if (index < 0 || index >= size || dims - 1 != grad->dims ||
        memcmp(sizes, opscope__sizes(grad), (size_t)grad->dims * sizeof *sizes) != 0) {
        status = opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                     "%s: a gradient of sizes %s is not that of index %lld of "
                                     "dimension %d of sizes %s",
                                     name, opscope__shape_text(grad).text, (long long)index, dim,
                                     opscope__shape_text(whole).text);
    } else {
        status = opscope__tensor_view(whole, dims - 1, sizes, strides,
                                      index * opscope__strides(whole)[dim], &part);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__copy(part, grad);
    }
    opscope_tensor_release(part);
    return opscope__tensor_finish(status, whole, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *more = backward->gradients[0];
    gradients[0] = opscope__keep(
        opscope__f(&f, "select", opscope__T(more), backward->arguments[2], backward->arguments[3]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(select_backward) = {
    .schema = "select_backward(Tensor grad_output, int[] sizes, int dim, int index) -> Tensor",
    .doc = "Zeros of those sizes with grad_output at one index of a dimension: the gradient "
           "through select.",
    .samples = "t(4), [3, 4], 0, 1",
    .forward = forward,
    .backward = backward,
};
