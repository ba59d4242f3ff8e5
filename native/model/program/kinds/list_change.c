/* model/program/kinds/list_change.c -- the methods that change a list. */
#include <string.h>

#include "model/program/kinds/index.h"
#include "model/program/kinds/kinds.h"
#include "opscope/status.h"

int opscope__list_setitem(struct opscope__heap *heap, const struct opscope__value *inputs,
                          struct opscope__value *out)
{
    (void)heap;
    (void)out;
    struct opscope__sequence *list = inputs[0].as.sequence;
    size_t at;
    int status = opscope__index_of(inputs[1].as.integer, list->count, "a list", &at);
    if (status == OPSCOPE_OK) {
        const struct opscope__value before = list->items[at];
        list->items[at] = opscope__value_retain(&inputs[2]);
        opscope__value_release(&before);
    }
    return status;
}

int opscope__list_append(struct opscope__heap *heap, const struct opscope__value *inputs,
                         struct opscope__value *out)
{
    (void)heap;
    (void)out;
    return opscope__sequence_push(inputs[0].as.sequence, opscope__value_retain(&inputs[1]));
}

int opscope__list_extend(struct opscope__heap *heap, const struct opscope__value *inputs,
                         struct opscope__value *out)
{
    (void)heap;
    (void)out;
    const struct opscope__sequence *more = inputs[1].as.sequence;
    return opscope__sequence_push_all(inputs[0].as.sequence, more->items, more->count);
}

/* An index beyond an end means that end. */
int opscope__list_insert(struct opscope__heap *heap, const struct opscope__value *inputs,
                         struct opscope__value *out)
{
    (void)heap;
    (void)out;
    struct opscope__sequence *list = inputs[0].as.sequence;
    int64_t index = inputs[1].as.integer, length = (int64_t)list->count;
    index = index < 0 ? index + length : index;
    index = index < 0 ? 0 : index > length ? length : index;
    int status = opscope__sequence_push(list, opscope__value_retain(&inputs[2]));
    if (status == OPSCOPE_OK) {
        const struct opscope__value item = list->items[length];
        memmove(&list->items[index + 1], &list->items[index],
                (size_t)(length - index) * sizeof item);
        list->items[index] = item;
    }
    return status;
}

int opscope__list_pop(struct opscope__heap *heap, const struct opscope__value *inputs,
                      struct opscope__value *out)
{
    (void)heap;
    struct opscope__sequence *list = inputs[0].as.sequence;
    size_t at;
    int status = opscope__index_of(inputs[1].as.integer, list->count, "a list", &at);
    if (status == OPSCOPE_OK) {
        *out = list->items[at];
        list->count--;
        memmove(&list->items[at], &list->items[at + 1], (list->count - at) * sizeof *list->items);
    }
    return status;
}

int opscope__list_reverse(struct opscope__heap *heap, const struct opscope__value *inputs,
                          struct opscope__value *out)
{
    (void)heap;
    (void)out;
    struct opscope__sequence *list = inputs[0].as.sequence;
    for (size_t i = 0; i < list->count / 2; i++) {
        const struct opscope__value item = list->items[i];
        list->items[i] = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = item;
    }
    return OPSCOPE_OK;
}

int opscope__list_clear(struct opscope__heap *heap, const struct opscope__value *inputs,
                        struct opscope__value *out)
{
    (void)heap;
    (void)out;
    struct opscope__sequence *list = inputs[0].as.sequence;
    while (list->count > 0) {
        opscope__value_release(&list->items[--list->count]);
    }
    return OPSCOPE_OK;
}
