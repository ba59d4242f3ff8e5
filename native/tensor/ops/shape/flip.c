/* tensor/ops/shape/flip.c -- core::flip: reverses dimensions. */
#include <string.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const opscope_tensor *self = arguments[0].as.tensor;
    uint32_t set = 0;
    int status = arguments[1].count == 0
                     ? OPSCOPE_OK
                     : opscope__dim_set(opscope__call_name(call), arguments[1].as.integers,
                                        arguments[1].count, self->dims, &set);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t strides[OPSCOPE_DIM_LIMIT], shift = 0;
    for (int i = 0; i < self->dims; i++) {
        bool turns = (set >> i & 1) != 0 && self->count > 0;
        strides[i] = turns ? -opscope__strides(self)[i] : opscope__strides(self)[i];
        shift += turns ? (opscope__sizes(self)[i] - 1) * opscope__strides(self)[i] : 0;
    }
    opscope_tensor *turned;
    status = opscope__tensor_view(self, self->dims, opscope__sizes(self), strides, shift, &turned);
    if (status == OPSCOPE_OK) {
        status = opscope__clone(turned, outputs);
        opscope_tensor_release(turned);
    }
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    gradients[0] = opscope__keep(
        opscope__f(&f, "flip", opscope__T(backward->gradients[0]), backward->arguments[1]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(flip) = {
    .schema = "flip(Tensor self, int[] dims) -> Tensor",
    .doc = "A copy with the order of the dimensions in dims reversed. x[::-1] gives a view.",
    .samples = "t(3, 4), [0]\n"
               "t(3, 4), [0, -1]",
    .forward = forward,
    .backward = backward,
};
