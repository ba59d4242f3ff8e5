/* tensor/ops/shape/unbind.c -- core::unbind: splits a dimension into its indices. */
#include "tensor/ops/shape/split.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)outputs;
    opscope_tensor *self = arguments[0].as.tensor;
    int dim;
    int status = opscope__cut_dim(opscope__call_name(call), self, arguments[1].as.integer, &dim);
    for (int64_t i = 0; status == OPSCOPE_OK && i < opscope__sizes(self)[dim]; i++) {
        const opscope_argument piece[] = {opscope__T(self), opscope__I(dim), opscope__I(i)};
        status = opscope__append_piece(call, "select", piece, 3);
    }
    return status;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(unbind) = {
    .schema = "unbind(Tensor self, int dim=0) -> Tensor[]",
    .doc = "A view of each index of dim, without that dimension.",
    .samples = "t(3, 4)\n"
               "t(3, 4), -1",
    .forward = forward,
    .is_composite = true,
};
