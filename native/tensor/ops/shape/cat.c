/* tensor/ops/shape/cat.c -- core::cat: concatenates tensors along a dimension. */
#include <string.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

/* A tensor of sizes [0] is compatible with any sizes, as in PyTorch: loops that collect parts start
 * with one. */
static bool is_nothing(const opscope_tensor *tensor)
{
    return tensor->dims == 1 && tensor->count == 0;
}

/* The tensor whose sizes the others must match. */
static const opscope_tensor *find_first(opscope_tensor *const *tensors, uint32_t count)
{
    uint32_t i = 0;
    while (i + 1 < count && is_nothing(tensors[i])) {
        i++;
    }
    return tensors[i];
}

/* The sizes of the result; all dimensions except `dim` must be equal. */
static int find_sizes(const char *name, opscope_tensor *const *tensors, uint32_t count, int dim,
                      int64_t *sizes)
{
    const opscope_tensor *first = find_first(tensors, count);
    memcpy(sizes, opscope__sizes(first), (size_t)first->dims * sizeof *sizes);
    sizes[dim] = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_nothing(tensors[i])) {
            continue;
        }
        bool fits = tensors[i]->dims == first->dims;
        for (int j = 0; j < first->dims && fits; j++) {
            fits = j == dim || opscope__sizes(tensors[i])[j] == sizes[j];
        }
        if (!fits) {
            return opscope_tensor_fail(
                OPSCOPE_ERROR_RUNTIME, "%s: sizes %s and %s differ in another dimension than %d",
                name, opscope__shape_text(first).text, opscope__shape_text(tensors[i]).text, dim);
        }
        sizes[dim] += opscope__sizes(tensors[i])[dim];
    }
    return OPSCOPE_OK;
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *const *tensors = arguments[0].as.tensors;
    uint32_t count = arguments[0].count;
    const opscope_tensor *first = count > 0 ? find_first(tensors, count) : NULL;
    if (first == NULL || first->dims == 0) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME, "%s: %s", name,
            count == 0 ? "at least one tensor is needed" : "tensors need at least one dimension");
    }
    int dim;
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    opscope_dtype dtype = (opscope_dtype)tensors[0]->dtype;
    int status = opscope__wrap_dim(name, arguments[1].as.integer, first->dims, &dim);
    if (status == OPSCOPE_OK) {
        status = find_sizes(name, tensors, count, dim, sizes);
    }
    for (uint32_t i = 1; i < count; i++) {
        dtype = opscope_dtype_promote(dtype, (opscope_dtype)tensors[i]->dtype);
    }
    opscope_tensor *made;
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(first->dims, sizes, dtype, &made);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t at = 0;
    for (uint32_t i = 0; i < count && status == OPSCOPE_OK; i++) {
        if (is_nothing(tensors[i])) {
            continue;
        }
        opscope_tensor *part;
        status =
            opscope__tensor_view(made, made->dims, opscope__sizes(tensors[i]),
                                 opscope__strides(made), at * opscope__strides(made)[dim], &part);
        if (status == OPSCOPE_OK) {
            status = opscope__copy(part, tensors[i]);
            opscope_tensor_release(part);
        }
        at += opscope__sizes(tensors[i])[dim];
    }
    return opscope__tensor_finish(status, made, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    int64_t dim = backward->arguments[1].as.integer, at = 0;
    for (size_t i = 0; i < backward->input_count; i++) {
        const opscope_tensor *input = backward->inputs[i];
        int64_t size =
            is_nothing(input) ? 0 : opscope__sizes(input)[dim < 0 ? dim + input->dims : dim];
        struct opscope__formula part = {0};
        if (backward->wanted[i] && is_nothing(input)) {
            gradients[i] = opscope__keep(opscope__f(
                &part, "zeros", opscope__L(opscope__sizes(input), 1), opscope__I(input->dtype)));
        } else if (backward->wanted[i]) {
            gradients[i] =
                opscope__keep(opscope__f(&part, "slice", opscope__T(grad), opscope__I(dim),
                                         opscope__I(at), opscope__I(at + size)));
        }
        f.status = f.status == OPSCOPE_OK ? opscope__formula_end(&part, NULL, 0) : f.status;
        at += size;
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(cat) = {
    .schema = "cat(Tensor[] tensors, int dim=0) -> Tensor",
    .doc = "Concatenates tensors along dim; all other sizes must be equal, dtypes promote. A "
           "tensor of sizes [0] is compatible with any.",
    .samples = "[t(2, 3), t(4, 3)], 0\n"
               "[t(2, 3), t(2, 1)], -1\n"
               "[t(0), t(2, 3), t(1, 3)], 0",
    .forward = forward,
    .backward = backward,
};
