/* tensor/ops/index/nonzero.c -- core::nonzero: the indices of elements that are not zero. */
#include "tensor/core/operator.h"
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/kernels/convert.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    const opscope_tensor *self = arguments[0].as.tensor;
    opscope_tensor *truths;
    int status = opscope__convert(self, OPSCOPE_BOOL, &truths);
    if (status != OPSCOPE_OK) {
        return status;
    }
    const uint8_t *all = (const uint8_t *)truths->data;
    int64_t count = 0;
    for (int64_t i = 0; i < truths->count; i++) {
        count += all[i];
    }
    int64_t sizes[] = {count, self->dims};
    status = opscope__tensor_empty(2, sizes, OPSCOPE_INT64, outputs);
    int64_t *at = status == OPSCOPE_OK ? (int64_t *)(void *)outputs[0]->data : NULL;
    for (int64_t i = 0; status == OPSCOPE_OK && i < truths->count; i++) {
        int64_t rest = i;
        if (all[i] == 0) {
            continue;
        }
        for (int dim = self->dims - 1; dim >= 0; dim--) {
            at[dim] = rest % opscope__sizes(self)[dim];
            rest /= opscope__sizes(self)[dim];
        }
        at += self->dims;
    }
    opscope_tensor_release(truths);
    return status;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(nonzero) = {
    .schema = "nonzero(Tensor self) -> Tensor",
    .doc = "The indices (int64) of the elements that are not zero, in row-major order, one row "
           "per element: [...] gives [count, dimensions].",
    .samples = "i(3, 4)\n"
               "t(3)\n"
               "b(2, 3, 2)\n"
               "i()",
    .forward = forward,
};
