/* model/program/argument.c -- values as arguments of operators. */
#include "model/program/argument.h"

#include "tensor/core/schema.h"

_Static_assert(sizeof(opscope_tensor *) <= sizeof(int64_t), "an item has room for a pointer");

static bool is_list(const struct opscope__given *given)
{
    return given->type == OPSCOPE__TYPE_INTS;
}

size_t opscope__argument_items(const struct opscope__given *given,
                               const struct opscope__value *value)
{
    if (value->kind == OPSCOPE__VALUE_LIST) {
        return value->as.sequence->count;
    }
    bool is_repeated = value->kind == OPSCOPE__VALUE_INT && is_list(given);
    size_t repeats = given->length > 0 ? given->length : 1;
    return is_repeated ? repeats : 0;
}

/* An empty list points somewhere too: operators compare and copy by pointers. */
static void fill_list(const struct opscope__given *given, const struct opscope__sequence *list,
                      void *memory, opscope_argument *out)
{
    static int64_t nowhere[1];
    memory = list->count > 0 ? memory : nowhere;
    if (given->type == OPSCOPE__TYPE_TENSORS) {
        opscope_tensor **tensors = memory;
        for (size_t i = 0; i < list->count; i++) {
            tensors[i] = list->items[i].as.tensor;
        }
        *out = (opscope_argument){
            OPSCOPE_ARGUMENT_TENSORS, (uint32_t)list->count, {.tensors = tensors}};
        return;
    }
    int64_t *integers = memory;
    for (size_t i = 0; i < list->count; i++) {
        integers[i] = list->items[i].as.integer;
    }
    *out = (opscope_argument){OPSCOPE_ARGUMENT_INTS, (uint32_t)list->count, {.integers = integers}};
}

static void fill_int(const struct opscope__given *given, const struct opscope__value *value,
                     void *memory, opscope_argument *out)
{
    int64_t integer = value->as.integer;
    if (is_list(given)) {
        int64_t *integers = memory;
        size_t count = opscope__argument_items(given, value);
        for (size_t i = 0; i < count; i++) {
            integers[i] = integer;
        }
        *out = (opscope_argument){OPSCOPE_ARGUMENT_INTS, (uint32_t)count, {.integers = integers}};
    } else if (given->type == OPSCOPE__TYPE_FLOAT) {
        *out = (opscope_argument){OPSCOPE_ARGUMENT_FLOAT, 0, {.real = (double)integer}};
    } else {
        *out = (opscope_argument){OPSCOPE_ARGUMENT_INT, 0, {.integer = integer}};
    }
}

void opscope__argument_fill(const struct opscope__given *given, const struct opscope__value *value,
                            void *memory, opscope_argument *out)
{
    switch ((enum opscope__value_kind)value->kind) {
    case OPSCOPE__VALUE_TENSOR:
        *out = (opscope_argument){OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = value->as.tensor}};
        break;
    case OPSCOPE__VALUE_BOOL:
        if (given->type == OPSCOPE__TYPE_TENSOR || given->type == OPSCOPE__TYPE_SCALAR) {
            *out = (opscope_argument){OPSCOPE_ARGUMENT_BOOL, 0, {.integer = value->as.integer}};
            break;
        }
        fill_int(given, value, memory, out);
        break;
    case OPSCOPE__VALUE_INT:
    case OPSCOPE__VALUE_DTYPE:
        fill_int(given, value, memory, out);
        break;
    case OPSCOPE__VALUE_FLOAT:
        *out = (opscope_argument){OPSCOPE_ARGUMENT_FLOAT, 0, {.real = value->as.real}};
        break;
    case OPSCOPE__VALUE_TEXT:
        *out = (opscope_argument){OPSCOPE_ARGUMENT_TEXT, 0, {.text = value->as.text->at}};
        break;
    case OPSCOPE__VALUE_LIST:
        fill_list(given, value->as.sequence, memory, out);
        break;
    default:
        *out = (opscope_argument){OPSCOPE_ARGUMENT_NONE, 0, {.integer = 0}};
    }
}
