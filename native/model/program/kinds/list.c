/* model/program/kinds/list.c -- new lists, and what is in a list. */
#include "model/program/kinds/index.h"
#include "model/program/kinds/kinds.h"
#include "opscope/status.h"

/* `list` NULL or `status` negative: reported. */
static int give(int status, struct opscope__sequence *list, struct opscope__value *out)
{
    if (list == NULL || status != OPSCOPE_OK) {
        opscope__sequence_release(list);
        return status != OPSCOPE_OK ? status : OPSCOPE_ERR_NO_MEMORY;
    }
    *out = opscope__value_list(list);
    return OPSCOPE_OK;
}

int opscope__list_add(struct opscope__heap *heap, const struct opscope__value *inputs,
                      struct opscope__value *out)
{
    const struct opscope__sequence *one = inputs[0].as.sequence, *other = inputs[1].as.sequence;
    struct opscope__sequence *sum = opscope__sequence_new(heap, one->count + other->count);
    int status = sum != NULL ? opscope__sequence_push_all(sum, one->items, one->count) : OPSCOPE_OK;
    if (sum != NULL && status == OPSCOPE_OK) {
        status = opscope__sequence_push_all(sum, other->items, other->count);
    }
    return give(status, sum, out);
}

int opscope__list_mul(struct opscope__heap *heap, const struct opscope__value *inputs,
                      struct opscope__value *out)
{
    const struct opscope__sequence *list = inputs[0].as.sequence;
    size_t times = inputs[1].as.integer > 0 ? (size_t)inputs[1].as.integer : 0, count;
    if (__builtin_mul_overflow(list->count, times, &count)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "a list of too many items");
    }
    struct opscope__sequence *product = opscope__sequence_new(heap, count);
    int status = OPSCOPE_OK;
    for (size_t made = 0; product != NULL && status == OPSCOPE_OK && made < count;
         made += list->count) {
        status = opscope__sequence_push_all(product, list->items, list->count);
    }
    return give(status, product, out);
}

int opscope__list_len(struct opscope__heap *heap, const struct opscope__value *inputs,
                      struct opscope__value *out)
{
    (void)heap;
    *out = opscope__value_int((int64_t)inputs[0].as.sequence->count);
    return OPSCOPE_OK;
}

int opscope__list_getitem(struct opscope__heap *heap, const struct opscope__value *inputs,
                          struct opscope__value *out)
{
    (void)heap;
    const struct opscope__sequence *list = inputs[0].as.sequence;
    size_t at;
    int status = opscope__index_of(inputs[1].as.integer, list->count, "a list", &at);
    if (status == OPSCOPE_OK) {
        *out = opscope__value_retain(&list->items[at]);
    }
    return status;
}

int opscope__list_slice(struct opscope__heap *heap, const struct opscope__value *inputs,
                        struct opscope__value *out)
{
    const struct opscope__sequence *list = inputs[0].as.sequence;
    struct opscope__slice slice;
    int status = opscope__slice_of(&inputs[1], list->count, &slice);
    if (status != OPSCOPE_OK) {
        return status;
    }
    struct opscope__sequence *part = opscope__sequence_new(heap, slice.count);
    for (size_t i = 0; part != NULL && i < slice.count; i++) {
        part->items[part->count++] =
            opscope__value_retain(&list->items[opscope__slice_at(&slice, i)]);
    }
    return give(OPSCOPE_OK, part, out);
}

int opscope__list_contains(struct opscope__heap *heap, const struct opscope__value *inputs,
                           struct opscope__value *out)
{
    (void)heap;
    const struct opscope__sequence *list = inputs[0].as.sequence;
    size_t at = 0;
    while (at < list->count && !opscope__value_equal(&list->items[at], &inputs[1])) {
        at++;
    }
    *out = opscope__value_bool(at < list->count);
    return OPSCOPE_OK;
}

int opscope__list_copy(struct opscope__heap *heap, const struct opscope__value *inputs,
                       struct opscope__value *out)
{
    const struct opscope__sequence *list = inputs[0].as.sequence;
    struct opscope__sequence *copy = opscope__sequence_new(heap, list->count);
    int status =
        copy != NULL ? opscope__sequence_push_all(copy, list->items, list->count) : OPSCOPE_OK;
    return give(status, copy, out);
}

int opscope__list_range(struct opscope__heap *heap, const struct opscope__value *inputs,
                        struct opscope__value *out)
{
    int64_t start = inputs[0].as.integer, stop = inputs[1].as.integer, step = inputs[2].as.integer;
    if (step == 0) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "range() arg 3 must not be zero");
    }
    bool is_up = step > 0;
    uint64_t count = 0;
    if (is_up ? start < stop : start > stop) {
        uint64_t distance =
            is_up ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
        count = (distance - 1) / (is_up ? (uint64_t)step : -(uint64_t)step) + 1;
    }
    struct opscope__sequence *list = opscope__sequence_new(heap, count);
    for (uint64_t i = 0; list != NULL && i < count; i++) {
        int64_t item = (int64_t)((uint64_t)start + i * (uint64_t)step);
        list->items[list->count++] = opscope__value_int(item);
    }
    return give(OPSCOPE_OK, list, out);
}
