/* model/program/kinds/index.c -- indices and slices, as Python counts them. */
#include "model/program/kinds/index.h"

#include "opscope/status.h"

int opscope__index_of(int64_t index, size_t count, const char *of, size_t *out)
{
    int64_t length = (int64_t)count;
    if (index < -length || index >= length) {
        return opscope_tensor_fail(OPSCOPE_ERROR_INDEX, "index %lld of %s of length %zu",
                                   (long long)index, of, count);
    }
    *out = (size_t)(index < 0 ? index + length : index);
    return OPSCOPE_OK;
}

/* A bound of a slice, moved between `lowest` and `highest`. */
static int64_t bound(const struct opscope__value *value, int64_t otherwise, int64_t length,
                     int64_t lowest, int64_t highest)
{
    if (value->kind == OPSCOPE__VALUE_NONE) {
        return otherwise;
    }
    int64_t index = value->as.integer;
    if (index < 0) {
        index += length;
        return index < lowest ? lowest : index;
    }
    return index > highest ? highest : index;
}

int opscope__slice_of(const struct opscope__value *part, size_t count, struct opscope__slice *out)
{
    int64_t step = part[2].as.integer, length = (int64_t)count;
    if (step == 0) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "slice step cannot be zero");
    }
    bool is_up = step > 0;
    int64_t lowest = is_up ? 0 : -1, highest = is_up ? length : length - 1;
    int64_t start = bound(&part[0], is_up ? lowest : highest, length, lowest, highest);
    int64_t end = bound(&part[1], is_up ? highest : lowest, length, lowest, highest);
    int64_t distance = is_up ? end - start : start - end;
    uint64_t stride = is_up ? (uint64_t)step : -(uint64_t)step;
    *out = (struct opscope__slice){0};
    if (distance > 0) {
        out->first = (size_t)start;
        out->count = (size_t)(((uint64_t)distance - 1) / stride + 1);
        /* One item takes no step, however far it would lead. */
        out->step = out->count > 1 ? step : 0;
    }
    return OPSCOPE_OK;
}
