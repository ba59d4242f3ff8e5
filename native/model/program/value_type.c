/* model/program/value_type.c -- whether a value is of a type. */
#include "model/program/program.h"

static bool items_are_of(const struct opscope__sequence *sequence,
                         const struct opscope__graph_type *const *types, size_t step)
{
    for (size_t i = 0; i < sequence->count; i++) {
        if (!opscope__value_is_of(&sequence->items[i], types[i * step])) {
            return false;
        }
    }
    return true;
}

/* No deeper than the type. */
bool opscope__value_is_of(const struct opscope__value *value,
                          const struct opscope__graph_type *type)
{
    switch ((enum opscope__graph_type_kind)type->kind) {
    case OPSCOPE__GRAPH_TENSOR:
        return value->kind == OPSCOPE__VALUE_TENSOR;
    case OPSCOPE__GRAPH_INT:
        return value->kind == OPSCOPE__VALUE_INT;
    case OPSCOPE__GRAPH_FLOAT:
        return value->kind == OPSCOPE__VALUE_FLOAT;
    case OPSCOPE__GRAPH_BOOL:
        return value->kind == OPSCOPE__VALUE_BOOL;
    case OPSCOPE__GRAPH_STR:
        return value->kind == OPSCOPE__VALUE_TEXT;
    case OPSCOPE__GRAPH_NONE:
        return value->kind == OPSCOPE__VALUE_NONE;
    case OPSCOPE__GRAPH_DTYPE:
        return value->kind == OPSCOPE__VALUE_DTYPE;
    case OPSCOPE__GRAPH_FUTURE:
        return value->kind == OPSCOPE__VALUE_FUTURE;
    case OPSCOPE__GRAPH_OPTIONAL:
        return value->kind == OPSCOPE__VALUE_NONE || opscope__value_is_of(value, type->parts[0]);
    case OPSCOPE__GRAPH_LIST:
        return value->kind == OPSCOPE__VALUE_LIST &&
               items_are_of(value->as.sequence, type->parts, 0);
    case OPSCOPE__GRAPH_TUPLE:
        return value->kind == OPSCOPE__VALUE_TUPLE && value->as.sequence->count == type->count &&
               items_are_of(value->as.sequence, type->parts, 1);
    default:
        return false;
    }
}
