/* model/document/find.c -- questions about one item. */
#include "model/document/document.h"

#include <string.h>

#include "model/document/keys.h"

const struct opscope__pair *opscope__item_pairs(const struct opscope__item *item)
{
    if (item->count == 0) {
        return NULL;
    }
    return item->kind == OPSCOPE__ITEM_MAP    ? item->as.pairs
           : item->kind == OPSCOPE__ITEM_CALL ? item->as.object->pairs
                                              : NULL;
}

const struct opscope__item *opscope__item_find(const struct opscope__item *item, const char *key)
{
    const struct opscope__pair *pairs = opscope__item_pairs(item);
    size_t bytes = strlen(key);
    if (pairs == NULL || bytes > OPSCOPE__INPUT_BYTES_LIMIT) {
        return NULL;
    }
    const struct opscope__item wanted = {
        .kind = OPSCOPE__ITEM_TEXT, .count = (uint32_t)bytes, .as.text = key};
    const uint32_t *order = opscope__keys_order(pairs, item->count);
    size_t from = 0, to = item->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const struct opscope__pair *pair = &pairs[order[middle]];
        int sign = opscope__keys_compare(&wanted, pair->key);
        if (sign == 0) {
            return pair->value;
        }
        if (sign < 0) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    return NULL;
}

bool opscope__item_is_global(const struct opscope__item *item, const char *name)
{
    if (item->kind == OPSCOPE__ITEM_CALL) {
        item = item->as.object->function;
    }
    return item->kind == OPSCOPE__ITEM_GLOBAL && strlen(name) == item->count &&
           memcmp(item->as.text, name, item->count) == 0;
}
