/* tensor/ops/index/one_hot.c -- core::one_hot: encodes indices as rows with a single one. */
#include "tensor/ops/index/index_rows.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    const opscope_tensor *self = arguments[0].as.tensor;
    int64_t classes = arguments[1].as.integer, sizes[OPSCOPE_DIM_LIMIT];
    opscope_tensor *indices;
    if (self->dims == OPSCOPE_DIM_LIMIT || opscope_dtype_is_floating((opscope_dtype)self->dtype) ||
        self->dtype == OPSCOPE_BOOL || (self->count == 0 && classes <= 0)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: %s of sizes %s; expected integers of less than %d dimensions, and "
            "num_classes where there are none",
            name, opscope_dtype_name((opscope_dtype)self->dtype), opscope__shape_text(self).text,
            OPSCOPE_DIM_LIMIT);
    }
    int status = opscope__convert(self, OPSCOPE_INT64, &indices);
    if (status != OPSCOPE_OK) {
        return status;
    }
    const int64_t *all = (const int64_t *)(const void *)indices->data;
    int64_t least = 0, most = -1;
    for (int64_t i = 0; i < indices->count; i++) {
        least = all[i] < least ? all[i] : least;
        most = all[i] > most ? all[i] : most;
    }
    classes = classes == -1 ? most + 1 : classes;
    if (least < 0 || most >= classes) {
        status = opscope_tensor_fail(
            OPSCOPE_ERROR_INDEX, "%s: indices from %lld to %lld (sizes %s) do not fit %lld classes",
            name, (long long)least, (long long)most, opscope__shape_text(self).text,
            (long long)classes);
    }
    memcpy(sizes, opscope__sizes(self), (size_t)self->dims * sizeof *sizes);
    sizes[self->dims] = classes;
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(self->dims + 1, sizes, OPSCOPE_INT64, outputs);
    }
    if (status == OPSCOPE_OK) {
        opscope__fill(outputs[0], &opscope__I(0));
        for (int64_t i = 0; i < indices->count; i++) {
            ((int64_t *)(void *)outputs[0]->data)[i * classes + all[i]] = 1;
        }
    }
    opscope_tensor_release(indices);
    return status;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(one_hot) = {
    .schema = "one_hot(Tensor self, int num_classes=-1) -> Tensor",
    .doc = "For each integer, a row of num_classes zeros with a one at that index: [...] gives "
           "[..., num_classes] in int64. By default num_classes is the largest integer plus "
           "one.",
    .samples = "index(4, 3), 4\n"
               "index(4, 2, 3), 6",
    .forward = forward,
};
