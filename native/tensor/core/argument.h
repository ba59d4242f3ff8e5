/* tensor/core/argument.h -- arguments of operators, written as values. */
#ifndef OPSCOPE_TENSOR_CORE_ARGUMENT_H
#define OPSCOPE_TENSOR_CORE_ARGUMENT_H

#include "opscope/tensor.h"

#define opscope__T(value) ((opscope_argument){OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = (value)}})
#define opscope__I(value) ((opscope_argument){OPSCOPE_ARGUMENT_INT, 0, {.integer = (value)}})
#define opscope__B(value) ((opscope_argument){OPSCOPE_ARGUMENT_BOOL, 0, {.integer = (value)}})
#define opscope__R(value) ((opscope_argument){OPSCOPE_ARGUMENT_FLOAT, 0, {.real = (value)}})
#define opscope__L(list, length)                                                                   \
    ((opscope_argument){OPSCOPE_ARGUMENT_INTS, (uint32_t)(length), {.integers = (list)}})
#define opscope__S(value) ((opscope_argument){OPSCOPE_ARGUMENT_TEXT, 0, {.text = (value)}})
#define opscope__N ((opscope_argument){OPSCOPE_ARGUMENT_NONE, 0, {.integer = 0}})

#endif
