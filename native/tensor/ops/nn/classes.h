/* tensor/ops/nn/classes.h -- reads the class indices of losses: [batch, classes, ...] and [batch,
 * ...]. */
#ifndef OPSCOPE_TENSOR_OPS_NN_CLASSES_H
#define OPSCOPE_TENSOR_OPS_NN_CLASSES_H

#include <string.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"
#include "tensor/ops/nn/loss.h"

struct opscope__classes {
    int64_t outer, classes, inner;
    opscope_tensor *target; /* owned: contiguous int64, checked; -1 for ignored targets */
    opscope_tensor *weight; /* owned, contiguous; NULL: all weights are 1 */
};

static inline void opscope__classes_release(struct opscope__classes *classes)
{
    opscope_tensor_release(classes->target);
    opscope_tensor_release(classes->weight);
}

static inline bool opscope__classes_fit(int dims, const int64_t *sizes, opscope_dtype dtype,
                                        const opscope_tensor *target,
                                        const opscope_argument *weight)
{
    int missing = dims > 1 ? 1 : 0;
    bool fits = dims > 0 && (dtype == OPSCOPE_FLOAT32 || dtype == OPSCOPE_FLOAT64) &&
                target->dims == dims - 1 &&
                !opscope_dtype_is_floating((opscope_dtype)target->dtype) &&
                target->dtype != OPSCOPE_BOOL;
    for (int i = 0; i < target->dims && fits; i++) {
        fits = opscope__sizes(target)[i] == sizes[i == 0 ? 0 : i + 1];
    }
    return fits && (weight->kind == OPSCOPE_ARGUMENT_NONE ||
                    (weight->as.tensor->dims == 1 && weight->as.tensor->dtype == dtype &&
                     opscope__sizes(weight->as.tensor)[0] == sizes[missing]));
}

/* `sizes` and `dtype` are those of the scores. On success the caller releases the result. */
static inline int opscope__classes_of(const char *name, int dims, const int64_t *sizes,
                                      opscope_dtype dtype, const opscope_tensor *target,
                                      const opscope_argument *weight, int64_t ignored,
                                      struct opscope__classes *out)
{
    *out = (struct opscope__classes){0};
    if (!opscope__classes_fit(dims, sizes, dtype, target, weight)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: %s scores of sizes %s, %s target of sizes %s, weight of sizes %s: expected floats "
            "[batch, classes, ...] or [classes], integers [batch, ...] or one, and [classes] like the scores",
            name, opscope_dtype_name(dtype), opscope__sizes_text(dims, sizes).text,
            opscope_dtype_name((opscope_dtype)target->dtype), opscope__shape_text(target).text,
            weight->kind == OPSCOPE_ARGUMENT_NONE ? "(none)"
                                                  : opscope__shape_text(weight->as.tensor).text);
    }
    int of_classes = dims > 1 ? 1 : 0;
    out->outer = opscope__count_of(of_classes, sizes);
    out->classes = sizes[of_classes];
    out->inner = opscope__count_of(dims - of_classes - 1, sizes + of_classes + 1);
    int status = opscope__convert(target, OPSCOPE_INT64, &out->target);
    if (status == OPSCOPE_OK && weight->kind != OPSCOPE_ARGUMENT_NONE) {
        status = opscope__contiguous(weight->as.tensor, &out->weight);
    }
    int64_t *all = status == OPSCOPE_OK ? (int64_t *)(void *)out->target->data : NULL;
    for (int64_t i = 0; status == OPSCOPE_OK && i < out->target->count; i++) {
        if (all[i] == ignored) {
            all[i] = -1;
        } else if (all[i] < 0 || all[i] >= out->classes) {
            status = opscope_tensor_fail(
                OPSCOPE_ERROR_INDEX,
                "%s: target %lld is out of range: there are %lld classes (scores of "
                "sizes %s), and %lld is ignored",
                name, (long long)all[i], (long long)out->classes,
                opscope__sizes_text(dims, sizes).text, (long long)ignored);
        }
    }
    if (status != OPSCOPE_OK) {
        opscope__classes_release(out);
    }
    return status;
}

#endif
