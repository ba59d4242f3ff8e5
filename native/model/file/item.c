/* model/file/item.c -- items of callers as values of a run, and back. */
#include <stdlib.h>
#include <string.h>

#include "model/document/build.h"
#include "model/file/model.h"
#include "opscope/status.h"

/* ---- from items ------------------------------------------------------------------------------- */

static int text_to_value(struct opscope__heap *heap, const opscope_item *item,
                         struct opscope__value *out)
{
    size_t bad;
    if (item->kind != OPSCOPE_ITEM_TEXT) {
        return OPSCOPE_ERR_INVALID;
    }
    if (!opscope__utf8_check((const uint8_t *)item->as.text, item->count, &bad)) {
        return OPSCOPE_ERR_INVALID;
    }
    struct opscope__text *text = opscope__text_new(heap, item->as.text, item->count);
    *out = opscope__value_text(text);
    return text != NULL ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
}

/* `step` 0: all are of one type. */
static int items_to_value(struct opscope__heap *heap, const opscope_item *item,
                          const struct opscope__graph_type *type, size_t step,
                          struct opscope__value *out)
{
    struct opscope__sequence *made = opscope__sequence_new(heap, item->count);
    int status = made != NULL ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
    for (size_t i = 0; status == OPSCOPE_OK && i < item->count; i++) {
        struct opscope__value part;
        status = opscope__item_to_value(heap, &item->as.items[i], type->parts[i * step], &part);
        if (status == OPSCOPE_OK) {
            status = opscope__sequence_push(made, part);
        }
    }
    if (status != OPSCOPE_OK) {
        opscope__sequence_release(made);
        return status;
    }
    *out = step > 0 ? opscope__value_tuple(made) : opscope__value_list(made);
    return OPSCOPE_OK;
}

static int number_to_value(const opscope_item *item, opscope_item_kind kind,
                           enum opscope__value_kind as, struct opscope__value *out)
{
    *out = (struct opscope__value){(uint8_t)as, {.integer = item->as.integer}};
    bool is_whole = kind == OPSCOPE_ITEM_INT ||
                    (item->as.integer >= 0 &&
                     item->as.integer < (kind == OPSCOPE_ITEM_BOOL ? 2 : OPSCOPE_DTYPE_COUNT));
    return item->kind == kind && is_whole ? OPSCOPE_OK : OPSCOPE_ERR_INVALID;
}

/* No deeper than the type. */
int opscope__item_to_value(struct opscope__heap *heap, const opscope_item *item,
                           const struct opscope__graph_type *type, struct opscope__value *out)
{
    *out = opscope__value_none;
    switch ((enum opscope__graph_type_kind)type->kind) {
    case OPSCOPE__GRAPH_TENSOR:
        if (item->kind != OPSCOPE_ITEM_TENSOR || item->as.tensor == NULL) {
            return OPSCOPE_ERR_INVALID;
        }
        *out = opscope__value_tensor(opscope_tensor_retain(item->as.tensor));
        return OPSCOPE_OK;
    case OPSCOPE__GRAPH_INT:
        return number_to_value(item, OPSCOPE_ITEM_INT, OPSCOPE__VALUE_INT, out);
    case OPSCOPE__GRAPH_BOOL:
        return number_to_value(item, OPSCOPE_ITEM_BOOL, OPSCOPE__VALUE_BOOL, out);
    case OPSCOPE__GRAPH_DTYPE:
        return number_to_value(item, OPSCOPE_ITEM_DTYPE, OPSCOPE__VALUE_DTYPE, out);
    case OPSCOPE__GRAPH_FLOAT:
        *out = opscope__value_float(item->as.real);
        return item->kind == OPSCOPE_ITEM_FLOAT ? OPSCOPE_OK : OPSCOPE_ERR_INVALID;
    case OPSCOPE__GRAPH_STR:
        return text_to_value(heap, item, out);
    case OPSCOPE__GRAPH_NONE:
        return item->kind == OPSCOPE_ITEM_NONE ? OPSCOPE_OK : OPSCOPE_ERR_INVALID;
    case OPSCOPE__GRAPH_OPTIONAL:
        return item->kind == OPSCOPE_ITEM_NONE
                   ? OPSCOPE_OK
                   : opscope__item_to_value(heap, item, type->parts[0], out);
    case OPSCOPE__GRAPH_LIST:
        return item->kind == OPSCOPE_ITEM_LIST ? items_to_value(heap, item, type, 0, out)
                                               : OPSCOPE_ERR_INVALID;
    case OPSCOPE__GRAPH_TUPLE:
        return item->kind == OPSCOPE_ITEM_TUPLE && item->count == type->count
                   ? items_to_value(heap, item, type, 1, out)
                   : OPSCOPE_ERR_INVALID;
    default:
        return OPSCOPE_ERR_INVALID;
    }
}

/* ---- to items ---------------------------------------------------------------------------------- */

static int no_memory(void)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory for results");
}

static int text_of_value(const struct opscope__text *text, opscope_item *out)
{
    char *copy = malloc(text->bytes + 1);
    if (copy == NULL) {
        return no_memory();
    }
    memcpy(copy, text->at, text->bytes + 1);
    *out = (opscope_item){OPSCOPE_ITEM_TEXT, text->bytes, {.text = copy}};
    return OPSCOPE_OK;
}

static int items_of_value(const struct opscope__sequence *sequence, opscope_item_kind kind,
                          opscope_item *out)
{
    opscope_item *items = calloc(sequence->count + 1, sizeof *items);
    if (items == NULL) {
        return no_memory();
    }
    *out = (opscope_item){kind, 0, {.items = items}};
    for (size_t i = 0; i < sequence->count; i++) {
        int status = opscope__item_of_value(&sequence->items[i], &items[i]);
        if (status != OPSCOPE_OK) {
            opscope_item_release(out);
            return status;
        }
        out->count++;
    }
    return OPSCOPE_OK;
}

int opscope__item_of_value(const struct opscope__value *value, opscope_item *out)
{
    static const opscope_item_kind kinds[] = {
        [OPSCOPE__VALUE_NONE] = OPSCOPE_ITEM_NONE,   [OPSCOPE__VALUE_BOOL] = OPSCOPE_ITEM_BOOL,
        [OPSCOPE__VALUE_INT] = OPSCOPE_ITEM_INT,     [OPSCOPE__VALUE_FLOAT] = OPSCOPE_ITEM_FLOAT,
        [OPSCOPE__VALUE_DTYPE] = OPSCOPE_ITEM_DTYPE, [OPSCOPE__VALUE_LIST] = OPSCOPE_ITEM_LIST,
        [OPSCOPE__VALUE_TUPLE] = OPSCOPE_ITEM_TUPLE};
    switch ((enum opscope__value_kind)value->kind) {
    case OPSCOPE__VALUE_TENSOR:
        *out = (opscope_item){
            OPSCOPE_ITEM_TENSOR, 0, {.tensor = opscope_tensor_retain(value->as.tensor)}};
        return OPSCOPE_OK;
    case OPSCOPE__VALUE_TEXT:
        return text_of_value(value->as.text, out);
    case OPSCOPE__VALUE_LIST:
    case OPSCOPE__VALUE_TUPLE:
        return items_of_value(value->as.sequence, kinds[value->kind], out);
    case OPSCOPE__VALUE_FLOAT:
        *out = (opscope_item){OPSCOPE_ITEM_FLOAT, 0, {.real = value->as.real}};
        return OPSCOPE_OK;
    default:
        *out = (opscope_item){kinds[value->kind], 0, {.integer = value->as.integer}};
        return OPSCOPE_OK;
    }
}

void opscope_item_release(opscope_item *item)
{
    switch (item->kind) {
    case OPSCOPE_ITEM_TENSOR:
        opscope_tensor_release(item->as.tensor);
        break;
    case OPSCOPE_ITEM_TEXT:
        free((void *)(uintptr_t)item->as.text);
        break;
    case OPSCOPE_ITEM_LIST:
    case OPSCOPE_ITEM_TUPLE:
        for (size_t i = 0; i < item->count; i++) {
            opscope_item_release((opscope_item *)(uintptr_t)&item->as.items[i]);
        }
        free((void *)(uintptr_t)item->as.items);
        break;
    default:
        break;
    }
    *item = (opscope_item){.kind = OPSCOPE_ITEM_NONE};
}
