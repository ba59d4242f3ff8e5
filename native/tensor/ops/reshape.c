/* tensor/ops/reshape.c -- core::reshape: the same elements in other sizes, copied only where that must be. */
#include "tensor/convert.h"
#include "tensor/formula.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    if (arguments[1].count > OPSCOPE_DIM_LIMIT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: at most %d dimensions, not %u", name,
                                   OPSCOPE_DIM_LIMIT, arguments[1].count);
    }
    int dims = (int)arguments[1].count;
    int64_t sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    int status = opscope__infer_sizes(name, self->count, dims, arguments[1].as.integers, sizes);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (opscope__view_strides(self, dims, sizes, strides)) {
        return opscope__tensor_view(self, dims, sizes, strides, 0, outputs);
    }
    opscope_tensor *copy;
    status = opscope__clone(self, &copy);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__tensor_view(copy, dims, sizes, NULL, 0, outputs);
    opscope_tensor_release(copy);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    const opscope_tensor *self = backward->inputs[0];
    gradients[0] = opscope__keep(opscope__f(&f, "reshape", opscope__T(grad),
                                            opscope__L(opscope__sizes(self), self->dims)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(reshape) = {
    .schema = "reshape(Tensor self, int[] shape) -> Tensor",
    .doc = "The same elements, in row-major order, in other sizes, of which one may be -1. A "
           "view where strides allow it, else a copy.",
    .samples = "t(3, 4), [2, -1]\n" "t(3, 4), [12]",
    .forward = forward,
    .backward = backward,
    .is_view = true,
};
