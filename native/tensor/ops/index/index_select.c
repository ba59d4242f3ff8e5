/* tensor/ops/index/index_select.c -- core::index_select: selects rows along a dimension. */
#include "tensor/ops/index/index_rows.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    const opscope_tensor *index = arguments[2].as.tensor;
    int dim;
    int status = opscope__wrap_dim(name, arguments[1].as.integer, self->dims, &dim);
    if (status == OPSCOPE_OK && (self->dims == 0 || index->dims != 1)) {
        status = opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: expected a tensor with dimensions and an index of one, got "
            "sizes %s and %s",
            name, opscope__shape_text(self).text, opscope__shape_text(index).text);
    }
    return status == OPSCOPE_OK ? opscope__pick_rows(name, self, dim, index, outputs) : status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    const opscope_tensor *self = backward->inputs[0];
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(opscope__f(&f, "index_add_backward", opscope__T(grad),
                                                opscope__L(opscope__sizes(self), self->dims),
                                                backward->arguments[1], backward->arguments[2]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(index_select) = {
    .schema = "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    .doc = "The rows of self along dim at the indices in a list of integers. Negative indices "
           "count from the end.",
    .samples = "t(3, 4), 0, index(3, 5)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 2,
};
