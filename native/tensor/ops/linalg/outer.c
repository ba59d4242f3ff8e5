/* tensor/ops/linalg/outer.c -- core::outer: the outer product of two vectors. */
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const opscope_tensor *self = arguments[0].as.tensor, *other = arguments[1].as.tensor;
    struct opscope__formula f = {0};
    if (self->dims != 1 || other->dims != 1) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: expected two lists, got sizes %s and %s",
                                   opscope__call_name(call), opscope__shape_text(self).text,
                                   opscope__shape_text(other).text);
    }
    opscope_tensor *column = opscope__f(&f, "unsqueeze", arguments[0], opscope__I(1));
    outputs[0] = opscope__keep(opscope__f(&f, "mul", opscope__T(column), arguments[1]));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(outer) = {
    .schema = "outer(Tensor self, Tensor vec2) -> Tensor",
    .doc = "All products of the elements of two vectors: [n] and [m] give [n, m].",
    .samples = "t(3), t(4)",
    .forward = forward,
    .is_composite = true,
};
