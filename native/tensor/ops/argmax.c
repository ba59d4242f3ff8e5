/* tensor/ops/argmax.c -- core::argmax: where the largest element is. */
#include "tensor/ops/rows.h"

/* The first of equal ones; a NaN counts as the largest. */
#define SEARCH(name, type)                                                                           \
    static int64_t name(const void *row, int64_t width)                                              \
    {                                                                                                \
        const type *x = row;                                                                         \
        int64_t best = 0;                                                                            \
        for (int64_t j = 1; j < width && x[best] == x[best]; j++) {                                  \
            best = x[j] > x[best] || x[j] != x[j] ? j : best;                                        \
        }                                                                                            \
        return best;                                                                                 \
    }

SEARCH(search_float32, float)
SEARCH(search_float64, double)
SEARCH(search_int32, int32_t)
SEARCH(search_int64, int64_t)
SEARCH(search_uint8, uint8_t)

typedef int64_t (*search)(const void *row, int64_t width);

static const search searches[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = search_float32,
    [OPSCOPE_FLOAT64] = search_float64,
    [OPSCOPE_INT32] = search_int32,
    [OPSCOPE_INT64] = search_int64,
    [OPSCOPE_UINT8] = search_uint8,
    [OPSCOPE_BOOL] = search_uint8,
};

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor, *rows, *made;
    bool all = arguments[1].kind == OPSCOPE_ARGUMENT_NONE;
    int dim = 0;
    int status = all ? OPSCOPE_OK
                     : opscope__wrap_dim(name, arguments[1].as.integer, self->dims, &dim);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (searches[self->dtype] == NULL || self->count == 0) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: not defined for %s of sizes %s; at least one number expected",
                                   name, opscope_dtype_name((opscope_dtype)self->dtype),
                                   opscope__shape_text(self).text);
    }
    status = all ? opscope__contiguous(self, &rows) : opscope__as_rows(self, dim, &rows);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    int64_t width = all ? self->count : opscope__sizes(rows)[rows->dims - 1];
    int dims = all ? 0 : rows->dims;
    for (int i = 0; i < dims; i++) {
        sizes[i] = i < dims - 1 ? opscope__sizes(rows)[i] : 1;
    }
    status = opscope__tensor_empty(dims, sizes, OPSCOPE_INT64, &made);
    if (status == OPSCOPE_OK) {
        int64_t bytes = width * (int64_t)opscope_dtype_bytes((opscope_dtype)self->dtype);
        for (int64_t i = 0; i < made->count; i++) {
            ((int64_t *)(void *)made->data)[i] = searches[self->dtype](rows->data + i * bytes, width);
        }
        opscope_tensor *kept = made;
        if (!all && self->dims > 0) {
            status = opscope__exchange_last(made, dim, &kept);
            opscope_tensor_release(made);
        }
        bool keeps = arguments[2].as.integer != 0;
        if (status == OPSCOPE_OK) {
            int left = 0;
            int64_t shape[2 * OPSCOPE_DIM_LIMIT];
            for (int i = 0; i < self->dims; i++) {
                if (!all && i != dim) {
                    shape[OPSCOPE_DIM_LIMIT + left] = opscope__strides(kept)[i];
                    shape[left++] = opscope__sizes(kept)[i];
                } else if (keeps) {
                    shape[OPSCOPE_DIM_LIMIT + left] = 1;
                    shape[left++] = 1;
                }
            }
            status = opscope__tensor_view(kept, left, shape, shape + OPSCOPE_DIM_LIMIT, 0, outputs);
            opscope_tensor_release(kept);
        }
    }
    opscope_tensor_release(rows);
    return status;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(argmax) = {
    .schema = "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    .doc = "The index (int64) of the largest element along dim, or of all elements in row-major "
           "order; the first of equal ones. NaN counts as the largest.",
    .samples = "t(3, 4)\n" "t(3, 4), 1\n" "t(3, 4), 0, True",
    .forward = forward,
};
