/* model/program/constant.c -- the constants of a program. */
#include <stdlib.h>
#include <string.h>

#include "model/program/lower.h"
#include "opscope/status.h"

static int dtype_value(const char *name, struct opscope__value *out)
{
    for (int i = 0; i < OPSCOPE_DTYPE_COUNT; i++) {
        if (strcmp(name, opscope_dtype_name((opscope_dtype)i)) == 0) {
            *out = opscope__value_dtype(i);
            return OPSCOPE_OK;
        }
    }
    return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "no dtype is named \"%.60s\"", name);
}

static int list_value(struct opscope__heap *heap, const struct opscope__graph_constant *constant,
                      const struct opscope__graph_type *type, struct opscope__value *out)
{
    struct opscope__sequence *list = opscope__sequence_new(heap, constant->count);
    if (list == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    *out = opscope__value_list(list);
    for (uint32_t i = 0; i < constant->count; i++) {
        struct opscope__value item;
        int status = opscope__constant_value(heap, &constant->as.items[i], type->parts[0], &item);
        if (status != OPSCOPE_OK) {
            opscope__constant_free(out);
            return status;
        }
        list->items[list->count++] = item;
    }
    return OPSCOPE_OK;
}

int opscope__constant_value(struct opscope__heap *heap,
                            const struct opscope__graph_constant *constant,
                            const struct opscope__graph_type *type, struct opscope__value *out)
{
    if (type->kind == OPSCOPE__GRAPH_OPTIONAL && constant->kind != OPSCOPE__GRAPH_CONSTANT_NONE) {
        return opscope__constant_value(heap, constant, type->parts[0], out);
    }
    switch ((enum opscope__graph_constant_kind)constant->kind) {
    case OPSCOPE__GRAPH_CONSTANT_BOOL:
        *out = opscope__value_bool(constant->as.boolean);
        return OPSCOPE_OK;
    case OPSCOPE__GRAPH_CONSTANT_INT:
        *out = opscope__value_int(constant->as.integer);
        return OPSCOPE_OK;
    case OPSCOPE__GRAPH_CONSTANT_FLOAT:
        *out = opscope__value_float(constant->as.real);
        return OPSCOPE_OK;
    case OPSCOPE__GRAPH_CONSTANT_STRING: {
        if (type->kind == OPSCOPE__GRAPH_DTYPE) {
            return dtype_value(constant->as.text, out);
        }
        struct opscope__text *text = opscope__text_forever(constant->as.text, constant->count);
        *out = opscope__value_text(text);
        return text != NULL ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
    }
    case OPSCOPE__GRAPH_CONSTANT_LIST:
        return list_value(heap, constant, type, out);
    default:
        *out = opscope__value_none;
        return OPSCOPE_OK;
    }
}

void opscope__constant_free(struct opscope__value *value)
{
    if (value->kind == OPSCOPE__VALUE_LIST) {
        struct opscope__sequence *list = value->as.sequence;
        while (list->count > 0) {
            opscope__constant_free(&list->items[--list->count]);
        }
    }
    if (value->kind == OPSCOPE__VALUE_TEXT) {
        free(value->as.text);
    } else {
        opscope__value_release(value);
    }
}
