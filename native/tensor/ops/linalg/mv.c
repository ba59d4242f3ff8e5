/* tensor/ops/linalg/mv.c -- core::mv: a matrix times a vector. */
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const opscope_tensor *self = arguments[0].as.tensor, *other = arguments[1].as.tensor;
    struct opscope__formula f = {0};
    if (self->dims != 2 || other->dims != 1 || opscope__sizes(self)[1] != other->count ||
        self->dtype != other->dtype) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: expected sizes [n, m] and [m] of one dtype, got %s %s and %s %s",
            opscope__call_name(call), opscope_dtype_name((opscope_dtype)self->dtype),
            opscope__shape_text(self).text, opscope_dtype_name((opscope_dtype)other->dtype),
            opscope__shape_text(other).text);
    }
    outputs[0] = opscope__keep(opscope__f(&f, "matmul", arguments[0], arguments[1]));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(mv) = {
    .schema = "mv(Tensor self, Tensor vec) -> Tensor",
    .doc = "The product of a matrix and a vector: [n, m] and [m] give [n].",
    .samples = "t(3, 4), t(4)",
    .forward = forward,
    .is_composite = true,
};
