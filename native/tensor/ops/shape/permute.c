/* tensor/ops/shape/permute.c -- core::permute: reorders dimensions. */
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    uint32_t seen;
    int status =
        opscope__dim_set(name, arguments[1].as.integers, arguments[1].count, self->dims, &seen);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (arguments[1].count != self->dims) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: the order has %u dimensions, the tensor %d (sizes %s); they "
            "must be equal",
            name, arguments[1].count, self->dims, opscope__shape_text(self).text);
    }
    int64_t sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    for (int i = 0; i < self->dims; i++) {
        int64_t from = arguments[1].as.integers[i];
        from += from < 0 ? self->dims : 0;
        sizes[i] = opscope__sizes(self)[from];
        strides[i] = opscope__strides(self)[from];
    }
    return opscope__tensor_view(self, self->dims, sizes, strides, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    int64_t inverse[OPSCOPE_DIM_LIMIT];
    int dims = (int)backward->arguments[1].count;
    for (int i = 0; i < dims; i++) {
        int64_t from = backward->arguments[1].as.integers[i];
        inverse[from < 0 ? from + dims : from] = i;
    }
    gradients[0] =
        opscope__keep(opscope__f(&f, "permute", opscope__T(grad), opscope__L(inverse, dims)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(permute) = {
    .schema = "permute(Tensor self, int[] dims) -> Tensor",
    .doc = "A view with all dimensions in the given order.",
    .samples = "t(2, 3, 4), [2, 0, 1]",
    .forward = forward,
    .backward = backward,
    .is_view = true,
};
