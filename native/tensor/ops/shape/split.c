/* tensor/ops/shape/split.c -- core::split: splits a tensor along a dimension. */
#include "tensor/ops/shape/split.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)outputs;
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    int dim;
    int status = opscope__cut_dim(name, self, arguments[2].as.integer, &dim);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t whole = opscope__sizes(self)[dim];
    if (arguments[1].kind == OPSCOPE_ARGUMENT_INT) {
        int64_t size = arguments[1].as.integer;
        if (size < 0 || (size == 0 && whole != 0)) {
            return opscope_tensor_fail(
                OPSCOPE_ERROR_RUNTIME,
                "%s: pieces of %lld along dimension %d of sizes %s; expected a positive "
                "size",
                name, (long long)size, dim, opscope__shape_text(self).text);
        }
        int64_t count = whole == 0 ? 1 : (whole - 1) / size + 1;
        return opscope__append_stretches(call, self, dim, count, size, NULL);
    }
    const int64_t *sizes = arguments[1].as.integers;
    int64_t sum = 0;
    bool fits = true;
    for (uint32_t i = 0; i < arguments[1].count && fits; i++) {
        fits = sizes[i] >= 0 && sizes[i] <= whole - sum;
        sum += sizes[i];
    }
    if (!fits || sum != whole) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: sizes %s do not sum to %lld, the size of dimension %d of %s", name,
            opscope__sizes_text((int)arguments[1].count, sizes).text, (long long)whole, dim,
            opscope__shape_text(self).text);
    }
    return opscope__append_stretches(call, self, dim, arguments[1].count, 0, sizes);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(split) = {
    .schema = "split(Tensor self, int|int[] split_size, int dim=0) -> Tensor[]",
    .doc = "Views of adjacent parts of dim: of that size, except perhaps the last; or of the "
           "given sizes, which must sum to the dimension's.",
    .samples = "t(5, 4), 2\n"
               "t(5, 4), [1, 0, 3], -1",
    .forward = forward,
    .is_composite = true,
};
