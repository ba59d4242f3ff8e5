/* tensor/ops/index/masked_select.c -- core::masked_select: the elements where a mask is true. */
#include <string.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    struct opscope__formula f = {0};
    const opscope_tensor *self = arguments[0].as.tensor, *mask = arguments[1].as.tensor;
    int64_t sizes[OPSCOPE_DIM_LIMIT], flat = -1;
    int dims = self->dims;
    if (mask->dtype != OPSCOPE_BOOL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: a mask is of bools, not %s (sizes %s)",
                                   name, opscope_dtype_name((opscope_dtype)mask->dtype),
                                   opscope__shape_text(mask).text);
    }
    memcpy(sizes, opscope__sizes(self), (size_t)dims * sizeof *sizes);
    int status = opscope__broadcast(name, &dims, sizes, mask->dims, opscope__sizes(mask));
    if (status != OPSCOPE_OK) {
        return status;
    }
    flat = opscope__count_of(dims, sizes);
    opscope_tensor *list[2];
    for (int i = 0; i < 2; i++) {
        opscope_tensor *whole = opscope__f(&f, "expand", arguments[i], opscope__L(sizes, dims));
        list[i] = opscope__f(&f, "reshape", opscope__T(whole), opscope__L(&flat, 1));
    }
    opscope_tensor *places = opscope__f1(&f, "nonzero", list[1]);
    places = opscope__f(&f, "squeeze", opscope__T(places), opscope__L(((int64_t[]){1}), 1));
    outputs[0] = opscope__keep(
        opscope__f(&f, "index_select", opscope__T(list[0]), opscope__I(0), opscope__T(places)));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(masked_select) = {
    .schema = "masked_select(Tensor self, Tensor mask) -> Tensor",
    .doc = "The elements where mask (bools) is true, in row-major order, as a 1-D tensor. Both "
           "broadcast.",
    .samples = "t(3, 4), b(3, 4)\n"
               "t(3, 4), b(4)\n"
               "t(3, 1), b(2, 3, 4)",
    .forward = forward,
    .is_composite = true,
};
