/* tensor/core/shape.c -- the sizes and strides of tensors. */
#include "tensor/core/shape.h"

#include <string.h>

#include "tensor/core/tensor.h"

struct opscope__sizes_text opscope__shape_text(const opscope_tensor *tensor)
{
    return opscope__sizes_text(tensor->dims, opscope__sizes(tensor));
}

/* Walks both shapes from the end. Old dimensions that are evenly spaced in memory form a run, which
 * can be split into any new dimensions; a new dimension may not span two runs. */
bool opscope__view_strides(const opscope_tensor *tensor, int dims, const int64_t *sizes,
                           int64_t *out)
{
    const int64_t *old_sizes = opscope__sizes(tensor), *old_strides = opscope__strides(tensor);
    if (tensor->count == 0 || tensor->dims == 0) {
        int64_t stride = 1;
        for (int i = dims - 1; i >= 0; i--) {
            out[i] = stride;
            stride *= sizes[i] > 1 ? sizes[i] : 1;
        }
        return true;
    }
    int next = dims - 1;
    int64_t base = old_strides[tensor->dims - 1];
    int64_t run = 1, placed = 1;
    for (int i = tensor->dims - 1; i >= 0; i--) {
        run *= old_sizes[i];
        if (i > 0 && (old_sizes[i - 1] == 1 || old_strides[i - 1] == run * base)) {
            continue;
        }
        while (next >= 0 && (placed < run || sizes[next] == 1)) {
            out[next] = placed * base;
            placed *= sizes[next--];
        }
        if (placed != run) {
            return false;
        }
        if (i > 0) {
            base = old_strides[i - 1];
            run = placed = 1;
        }
    }
    return next == -1;
}

bool opscope__same_sizes(const opscope_tensor *a, const opscope_tensor *b)
{
    return a->dims == b->dims && memcmp(a->shape, b->shape, (size_t)a->dims * sizeof(int64_t)) == 0;
}

bool opscope__overlaps_itself(const opscope_tensor *tensor)
{
    if (tensor->is_contiguous) {
        return false;
    }
    /* Sorted by stride, each dimension must step over the whole extent of the smaller ones; a
     * tensor that fails this check is assumed to overlap. */
    int64_t reached = 0;
    uint32_t done = 0;
    for (int round = 0; round < tensor->dims; round++) {
        int least = -1;
        int64_t least_step = 0;
        for (int i = 0; i < tensor->dims; i++) {
            int64_t step = opscope__strides(tensor)[i];
            step = step < 0 ? -step : step;
            if ((done >> i & 1) == 0 && (least < 0 || step < least_step)) {
                least = i;
                least_step = step;
            }
        }
        done |= 1u << least;
        int64_t size = opscope__sizes(tensor)[least];
        if (size > 1) {
            if (least_step <= reached) {
                return true;
            }
            reached += (size - 1) * least_step;
        }
    }
    return false;
}

int opscope__check_written(const char *name, const opscope_tensor *target)
{
    if (target->storage->read_only) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "%s: the tensor's memory is read-only; clone it first", name);
    }
    if (opscope__overlaps_itself(target)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: several elements of the written tensor (sizes %s, strides %s) share one address in "
            "memory, as after expand; clone it first",
            name, opscope__shape_text(target).text,
            opscope__sizes_text(target->dims, opscope__strides(target)).text);
    }
    return OPSCOPE_OK;
}
