/* model/program/kinds/compare.c -- comparisons, and the lesser and greater of two numbers. */
#include <string.h>

#include "model/program/kinds/kinds.h"
#include "opscope/status.h"

/* As Python compares characters, which UTF-8 keeps in order. */
static int compare_texts(const struct opscope__text *one, const struct opscope__text *other)
{
    size_t bytes = one->bytes < other->bytes ? one->bytes : other->bytes;
    int order = memcmp(one->at, other->at, bytes);
    return order != 0 ? order : (one->bytes > other->bytes) - (one->bytes < other->bytes);
}

#define COMPARE(function, expression)                                                              \
    int function(struct opscope__heap *heap, const struct opscope__value *inputs,                  \
                 struct opscope__value *out)                                                       \
    {                                                                                              \
        (void)heap;                                                                                \
        *out = opscope__value_bool(expression);                                                    \
        return OPSCOPE_OK;                                                                         \
    }

COMPARE(opscope__any_eq, opscope__value_equal(&inputs[0], &inputs[1]))
COMPARE(opscope__any_ne, !opscope__value_equal(&inputs[0], &inputs[1]))
COMPARE(opscope__any_is_none, inputs[0].kind == OPSCOPE__VALUE_NONE)

COMPARE(opscope__int_lt, inputs[0].as.integer < inputs[1].as.integer)
COMPARE(opscope__int_le, inputs[0].as.integer <= inputs[1].as.integer)
COMPARE(opscope__int_gt, inputs[0].as.integer > inputs[1].as.integer)
COMPARE(opscope__int_ge, inputs[0].as.integer >= inputs[1].as.integer)
COMPARE(opscope__float_lt, inputs[0].as.real < inputs[1].as.real)
COMPARE(opscope__float_le, inputs[0].as.real <= inputs[1].as.real)
COMPARE(opscope__float_gt, inputs[0].as.real > inputs[1].as.real)
COMPARE(opscope__float_ge, inputs[0].as.real >= inputs[1].as.real)
COMPARE(opscope__str_lt, compare_texts(inputs[0].as.text, inputs[1].as.text) < 0)
COMPARE(opscope__str_le, compare_texts(inputs[0].as.text, inputs[1].as.text) <= 0)
COMPARE(opscope__str_gt, compare_texts(inputs[0].as.text, inputs[1].as.text) > 0)
COMPARE(opscope__str_ge, compare_texts(inputs[0].as.text, inputs[1].as.text) >= 0)

/* The first of two that are equal or of which one is NaN, as Python's min() and max(). */
#define CHOOSE(function, second_wins)                                                              \
    int function(struct opscope__heap *heap, const struct opscope__value *inputs,                  \
                 struct opscope__value *out)                                                       \
    {                                                                                              \
        (void)heap;                                                                                \
        *out = inputs[second_wins];                                                                \
        return OPSCOPE_OK;                                                                         \
    }

CHOOSE(opscope__int_min, inputs[1].as.integer < inputs[0].as.integer)
CHOOSE(opscope__int_max, inputs[1].as.integer > inputs[0].as.integer)
CHOOSE(opscope__float_min, inputs[1].as.real < inputs[0].as.real)
CHOOSE(opscope__float_max, inputs[1].as.real > inputs[0].as.real)
