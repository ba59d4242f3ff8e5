/* tensor/ops/index/topk.c -- core::topk: the k largest or smallest elements. */
#include "tensor/ops/index/sorting.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    const opscope_tensor *self = arguments[0].as.tensor;
    int64_t k = arguments[1].as.integer;
    int dim;
    int status = opscope__wrap_dim(name, arguments[2].as.integer, self->dims, &dim);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (k < 0 || k > (self->dims > 0 ? opscope__sizes(self)[dim] : 1)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: k is %lld; dimension %d of sizes %s has not as many elements", name, (long long)k,
            dim, opscope__shape_text(self).text);
    }
    return opscope__sorted(name, self, dim, arguments[3].as.integer != 0, self->dims > 0 ? k : 1,
                           outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    return opscope__sorted_backward(backward, backward->arguments[2], gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(topk) = {
    .schema = "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> "
              "(Tensor values, Tensor indices)",
    .doc = "The k largest (or smallest) elements along dim, best first, and the index (int64) "
           "of each; the first of equal ones. They are always sorted. NaN counts as the "
           "largest.",
    .samples = "t(3, 9), 2\n"
               "t(5, 4), 3, 0, False\n"
               "t(4), 0\n"
               "t(2, 200), 100",
    .forward = forward,
    .backward = backward,
    .saves_outputs = 2,
};
