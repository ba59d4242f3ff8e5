/* tensor/ops/shape/flatten.c -- core::flatten: merges dimensions into one. */
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    struct opscope__formula f = {0};
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    int first, last, dims = 0;
    int status = opscope__wrap_dim(name, arguments[1].as.integer, self->dims, &first);
    if (status == OPSCOPE_OK) {
        status = opscope__wrap_dim(name, arguments[2].as.integer, self->dims, &last);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (first > last) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: start_dim %d comes after end_dim %d (sizes %s)", name,
                                   first, last, opscope__shape_text(self).text);
    }
    for (int i = 0; i < self->dims; i++) {
        if (i > first && i <= last) {
            sizes[dims - 1] *= opscope__sizes(self)[i];
        } else {
            sizes[dims++] = opscope__sizes(self)[i];
        }
    }
    if (self->dims == 0) {
        sizes[dims++] = 1;
    }
    outputs[0] =
        opscope__keep(opscope__f(&f, "reshape", opscope__T(self), opscope__L(sizes, dims)));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(flatten) = {
    .schema = "flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor",
    .doc = "self with the dimensions from start_dim to end_dim, both included, merged into one: "
           "a view if the strides allow it, else a copy. A scalar becomes a 1-D tensor of one "
           "element.",
    .samples = "t(2, 3, 4)\n"
               "t(2, 3, 4), 1\n"
               "t(2, 3, 4), 0, 1\n"
               "t()",
    .forward = forward,
    .is_composite = true,
};
