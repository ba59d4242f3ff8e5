/* tensor/ops/shape/chunk.c -- core::chunk: splits a tensor into a number of parts. */
#include "tensor/ops/shape/split.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)outputs;
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    int64_t chunks = arguments[1].as.integer;
    int dim;
    int status = opscope__cut_dim(name, self, arguments[2].as.integer, &dim);
    if (status == OPSCOPE_OK && chunks <= 0) {
        status = opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                     "%s: %lld chunks of sizes %s; expected at least one", name,
                                     (long long)chunks, opscope__shape_text(self).text);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t whole = opscope__sizes(self)[dim];
    int64_t size = whole == 0 ? 0 : (whole - 1) / chunks + 1;
    return opscope__append_stretches(call, self, dim, whole == 0 ? chunks : (whole - 1) / size + 1,
                                     size, NULL);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(chunk) = {
    .schema = "chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
    .doc = "At most that many views of adjacent parts of dim, all of one size except perhaps "
           "the last.",
    .samples = "t(5, 4), 3\n"
               "t(5, 4), 2, -1\n"
               "t(4, 2), 3",
    .forward = forward,
    .is_composite = true,
};
