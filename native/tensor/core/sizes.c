/* tensor/core/sizes.c -- arithmetic on sizes and strides. */
#include "tensor/core/sizes.h"

#include <stdio.h>
#include <string.h>

struct opscope__sizes_text opscope__sizes_text(int dims, const int64_t *sizes)
{
    struct opscope__sizes_text out = {"["};
    size_t used = 1;
    for (int i = 0; i < dims && used < sizeof out.text - 32; i++) {
        used += (size_t)snprintf(out.text + used, sizeof out.text - used, i > 0 ? ", %lld" : "%lld",
                                 (long long)sizes[i]);
    }
    memcpy(out.text + used, "]", 2);
    return out;
}

int opscope__extent_of(int dims, const int64_t *sizes, const int64_t *strides,
                       struct opscope__extent *out)
{
    struct opscope__extent extent = {0, 0};
    for (int i = 0; i < dims; i++) {
        int64_t reach;
        int64_t *end = strides[i] < 0 ? &extent.first : &extent.last;
        /* A stride in bytes must be representable even if it is never taken. */
        if (strides[i] < -OPSCOPE__STRIDE_LIMIT || strides[i] > OPSCOPE__STRIDE_LIMIT ||
            (sizes[i] > 0 && (__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
                              __builtin_add_overflow(*end, reach, end)))) {
            return opscope_tensor_fail(
                OPSCOPE_ERROR_VALUE, "strides %s with sizes %s exceed memory",
                opscope__sizes_text(dims, strides).text, opscope__sizes_text(dims, sizes).text);
        }
    }
    *out = extent;
    return OPSCOPE_OK;
}

int opscope__broadcast(const char *name, int *into_dims, int64_t *into, int dims,
                       const int64_t *sizes)
{
    int64_t before[OPSCOPE_DIM_LIMIT];
    int before_dims = *into_dims;
    memcpy(before, into, (size_t)before_dims * sizeof *into);
    int all = dims > before_dims ? dims : before_dims;
    for (int i = 1; i <= all; i++) {
        int64_t a = i <= before_dims ? before[before_dims - i] : 1;
        int64_t b = i <= dims ? sizes[dims - i] : 1;
        if (a != b && a != 1 && b != 1) {
            return opscope_tensor_fail(
                OPSCOPE_ERROR_RUNTIME,
                "%s: sizes %s and %s do not broadcast: %lld and %lld in dimension %d from the end "
                "must be equal, or one of them 1",
                name, opscope__sizes_text(before_dims, before).text,
                opscope__sizes_text(dims, sizes).text, (long long)a, (long long)b, i);
        }
        into[all - i] = a == 1 ? b : a;
    }
    *into_dims = all;
    return OPSCOPE_OK;
}

int opscope__wrap_dim(const char *name, int64_t dim, int dims, int *out)
{
    int limit = dims > 0 ? dims : 1;
    if (dim < -limit || dim >= limit) {
        return opscope_tensor_fail(OPSCOPE_ERROR_INDEX,
                                   "%s: dimension %lld is out of range; expected %d to %d", name,
                                   (long long)dim, -limit, limit - 1);
    }
    *out = (int)(dim < 0 ? dim + limit : dim);
    return OPSCOPE_OK;
}

int opscope__dim_set(const char *name, const int64_t *list, size_t count, int dims, uint32_t *out)
{
    uint32_t set = count == 0 ? (1u << dims) - 1 : 0;
    for (size_t i = 0; i < count; i++) {
        int dim = 0;
        int status = opscope__wrap_dim(name, list[i], dims, &dim);
        if (status != OPSCOPE_OK) {
            return status;
        }
        if ((set >> dim & 1) != 0) {
            return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                       "%s: dimension %d occurs twice in the list of dimensions",
                                       name, dim);
        }
        set |= 1u << dim;
    }
    *out = dims > 0 ? set : 0;
    return OPSCOPE_OK;
}

int opscope__infer_sizes(const char *name, int64_t count, int dims, const int64_t *sizes,
                         int64_t *out)
{
    int64_t known = 1;
    int inferred = -1;
    bool wrong = false;
    for (int i = 0; i < dims; i++) {
        out[i] = sizes[i];
        if (sizes[i] == -1 && inferred < 0) {
            inferred = i;
        } else {
            wrong |= sizes[i] < 0 || __builtin_mul_overflow(known, sizes[i], &known);
        }
    }
    if (!wrong && inferred >= 0) {
        wrong = known == 0 || count % known != 0;
        out[inferred] = wrong ? 0 : count / known;
    } else {
        wrong |= known != count;
    }
    if (wrong) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: sizes %s do not hold the %lld elements of the input; their product must be %lld "
            "(at most one may be -1)",
            name, opscope__sizes_text(dims, sizes).text, (long long)count, (long long)count);
    }
    return OPSCOPE_OK;
}
