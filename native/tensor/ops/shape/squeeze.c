/* tensor/ops/shape/squeeze.c -- core::squeeze: dimensions of size one removed. */
#include "tensor/ops/shape/reshape.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    uint32_t set;
    bool all = arguments[1].kind == OPSCOPE_ARGUMENT_NONE;
    int status = opscope__dim_set(name, all ? NULL : arguments[1].as.integers,
                                  all ? 0 : arguments[1].count, self->dims, &set);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int dims = 0;
    int64_t sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    for (int i = 0; i < self->dims; i++) {
        if (opscope__sizes(self)[i] != 1 || (set >> i & 1) == 0) {
            sizes[dims] = opscope__sizes(self)[i];
            strides[dims++] = opscope__strides(self)[i];
        }
    }
    return opscope__tensor_view(self, dims, sizes, strides, 0, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(squeeze) = {
    .schema = "squeeze(Tensor self, int[]? dim=None) -> Tensor",
    .doc = "A view without the dimensions of size 1, or without those dimensions in the list "
           "that have size 1.",
    .samples = "t(1, 3, 1)\n"
               "t(1, 3, 1), [0]",
    .forward = forward,
    .backward = opscope__resized_backward,
    .is_view = true,
};
