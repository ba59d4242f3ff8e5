/* tensor/ops/linalg/dot.c -- core::dot: the dot product of two vectors. */
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const opscope_tensor *self = arguments[0].as.tensor, *other = arguments[1].as.tensor;
    struct opscope__formula f = {0};
    if (self->dims != 1 || other->dims != 1 || self->count != other->count ||
        self->dtype != other->dtype) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: expected sizes [n] and [n] of one dtype, got %s %s and %s %s",
            opscope__call_name(call), opscope_dtype_name((opscope_dtype)self->dtype),
            opscope__shape_text(self).text, opscope_dtype_name((opscope_dtype)other->dtype),
            opscope__shape_text(other).text);
    }
    outputs[0] = opscope__keep(opscope__f(&f, "matmul", arguments[0], arguments[1]));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(dot) = {
    .schema = "dot(Tensor self, Tensor other) -> Tensor",
    .doc = "The dot product of two vectors: [n] and [n] give one number.",
    .samples = "t(4), t(4)",
    .forward = forward,
    .is_composite = true,
};
