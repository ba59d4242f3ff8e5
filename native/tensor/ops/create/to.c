/* tensor/ops/create/to.c -- core::to: another dtype. */
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *self = arguments[0].as.tensor;
    int64_t dtype = arguments[1].as.integer;
    if (dtype < 0 || dtype >= OPSCOPE_DTYPE_COUNT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: dtype %lld is unknown",
                                   opscope__call_name(call), (long long)dtype);
    }
    return self->dtype == dtype ? opscope__tensor_alias(self, outputs)
                                : opscope__convert(self, (opscope_dtype)dtype, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(
        opscope__f(&f, "to", opscope__T(grad), opscope__I(backward->inputs[0]->dtype)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(to) = {
    .schema = "to(Tensor self, dtype dtype) -> Tensor",
    .doc = "The elements in another dtype; a view if the dtype is the same. Floats become "
           "integers by truncation; beyond the range of int64 they become its nearest end.",
    .samples = "t(3, 4), float64",
    .forward = forward,
    .backward = backward,
    .is_view = true,
};
