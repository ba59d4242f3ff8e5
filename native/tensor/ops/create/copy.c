/* tensor/ops/create/copy.c -- core::copy: another tensor's elements in the sizes and dtype of
 * self. */
#include <string.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *self = arguments[0].as.tensor, *source = arguments[1].as.tensor;
    opscope_tensor *into = opscope__call_into(call);
    int dims = self->dims;
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    memcpy(sizes, opscope__sizes(self), (size_t)dims * sizeof *sizes);
    int status = opscope__broadcast(opscope__call_name(call), &dims, sizes, source->dims,
                                    opscope__sizes(source));
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (dims != self->dims || opscope__count_of(dims, sizes) != self->count) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "%s: sizes %s do not broadcast to %s",
                                   opscope__call_name(call), opscope__shape_text(source).text,
                                   opscope__shape_text(self).text);
    }
    opscope_tensor *made;
    if (into != NULL && into->dtype == self->dtype && opscope__same_sizes(into, self)) {
        made = opscope_tensor_retain(into);
    } else {
        status = opscope__tensor_empty(self->dims, opscope__sizes(self), self->dtype, &made);
    }
    if (status == OPSCOPE_OK) {
        opscope__copy(made, source);
        outputs[0] = made;
    }
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(opscope__f(&f, "fill", opscope__T(grad), opscope__I(0)));
    }
    if (backward->wanted[1]) {
        gradients[1] = opscope__keep(opscope__sum_to(&f, grad, backward->inputs[1]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(copy) = {
    .schema = "copy(Tensor self, Tensor src) -> Tensor",
    .doc = "The elements of src in the sizes and dtype of self; copy_ writes them into self.",
    .samples = "t(3, 4), t(4)",
    .forward = forward,
    .backward = backward,
    .has_inplace = true,
};
