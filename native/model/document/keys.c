/* model/document/keys.c -- the keys of a MAP in sorted order. */
#include "model/document/keys.h"

#include <stdlib.h>
#include <string.h>

#include "model/document/build.h"
#include "opscope/status.h"

static int sign(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static bool is_comparable(const struct opscope__item *key)
{
    return key->kind <= OPSCOPE__ITEM_INT || key->kind == OPSCOPE__ITEM_TEXT;
}

int opscope__keys_compare(const struct opscope__item *a, const struct opscope__item *b)
{
    if (a->kind != b->kind) {
        return sign(a->kind, b->kind);
    }
    if (a->kind == OPSCOPE__ITEM_BOOL) {
        return sign(a->as.boolean, b->as.boolean);
    }
    if (a->kind == OPSCOPE__ITEM_INT) {
        return sign(a->as.integer, b->as.integer);
    }
    if (a->kind == OPSCOPE__ITEM_TEXT) {
        int found = memcmp(a->as.text, b->as.text, a->count < b->count ? a->count : b->count);
        return found != 0 ? found : sign(a->count, b->count);
    }
    return 0;
}

/* For qsort, of pointers into one array of pairs. Equal keys in the order of the input. */
static int compare_pairs(const void *a, const void *b)
{
    const struct opscope__pair *first = *(const struct opscope__pair *const *)a;
    const struct opscope__pair *second = *(const struct opscope__pair *const *)b;
    int found = opscope__keys_compare(first->key, second->key);
    return found != 0 ? found : (first > second) - (first < second);
}

static int fail_twice(const struct opscope__pair *pair)
{
    const struct opscope__item *key = pair->key;
    /* A constant has no offset; the value stands beside it. */
    size_t offset = key->offset != 0 ? key->offset : pair->value->offset;
    if (key->kind == OPSCOPE__ITEM_TEXT) {
        return opscope__document_fail(offset, "key \"%s\" a second time",
                                      opscope__printable(key->as.text, key->count).text);
    }
    if (key->kind == OPSCOPE__ITEM_INT) {
        return opscope__document_fail(offset, "key %lld a second time", (long long)key->as.integer);
    }
    return opscope__document_fail(offset, "the same %s is a key a second time",
                                  opscope__item_kind_name(key));
}

static int fill(const struct opscope__pair **sorted, const struct opscope__pair *pairs,
                size_t count, uint32_t *order)
{
    for (size_t i = 0; i < count; i++) {
        const struct opscope__item *key = pairs[i].key;
        if (key->kind == OPSCOPE__ITEM_TEXT && key->count > OPSCOPE__KEY_BYTES_LIMIT) {
            return opscope__document_fail(key->offset, "a key of %u bytes, more than %d",
                                          key->count, OPSCOPE__KEY_BYTES_LIMIT);
        }
        sorted[i] = &pairs[i];
    }
    qsort(sorted, count, sizeof *sorted, compare_pairs);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && is_comparable(sorted[i]->key) &&
            opscope__keys_compare(sorted[i - 1]->key, sorted[i]->key) == 0) {
            return fail_twice(sorted[i]);
        }
        order[i] = (uint32_t)(sorted[i] - pairs);
    }
    return OPSCOPE_OK;
}

int opscope__keys_sort(struct opscope__document *document, struct opscope__pair **pairs,
                       size_t count)
{
    struct opscope__pair *copy =
        opscope__document_memory(document, count * (sizeof *copy + sizeof(uint32_t)));
    if (copy == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    const struct opscope__pair **sorted = malloc(count * sizeof *sorted);
    if (sorted == NULL) {
        return opscope__document_no_memory();
    }
    memcpy(copy, *pairs, count * sizeof *copy);
    int status = fill(sorted, copy, count, (uint32_t *)(copy + count));
    free(sorted);
    *pairs = copy;
    return status;
}
