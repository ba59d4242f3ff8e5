/* tensor/ops/index/sort.c -- core::sort: sorted elements and their indices. */
#include "tensor/ops/index/sorting.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    const opscope_tensor *self = arguments[0].as.tensor;
    int dim;
    int status = opscope__wrap_dim(name, arguments[1].as.integer, self->dims, &dim);
    return status == OPSCOPE_OK
               ? opscope__sorted(name, self, dim, arguments[2].as.integer != 0, -1, outputs)
               : status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    return opscope__sorted_backward(backward, backward->arguments[1], gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(sort) = {
    .schema = "sort(Tensor self, int dim=-1, bool descending=False, *, bool stable=True) -> "
              "(Tensor values, Tensor indices)",
    .doc = "The elements along dim in ascending or descending order, and the index (int64) of "
           "each. Equal elements keep their order. NaN counts as the largest.",
    .samples = "t(3, 40)\n"
               "t(3, 4), 0, True\n"
               "t()\n"
               "i(30), stable=True\n"
               "b(5), 0, True, stable=True",
    .forward = forward,
    .backward = backward,
    .saves_outputs = 2,
};
