/* model/program/kinds/kinds.h -- the kinds py::NAME: what Python does with numbers, texts and
 * lists.
 *
 * A kind has one row of the table (table.c) for each combination of types that it takes, with one
 * function. Lowering chooses the row, so that a function never looks at types.
 */
#ifndef OPSCOPE_MODEL_PROGRAM_KINDS_H
#define OPSCOPE_MODEL_PROGRAM_KINDS_H

#include "model/program/value.h"

enum { OPSCOPE__KIND_INPUT_LIMIT = 4 };

/* `inputs` are borrowed; `*out` becomes a new reference. 0 or a negative status. */
typedef int opscope__kind_function(struct opscope__heap *heap, const struct opscope__value *inputs,
                                   struct opscope__value *out);

struct opscope__kind {
    const char *name;
    /* Types, separated by ", ". T is any type, the same one each time; "plain" is a bool, int,
     * float, str or Dtype, the same one each time; "any" is any type; "numbers" a number or
     * nested lists of numbers. What is accepted for Optional[T] is accepted for it here too. */
    const char *inputs;
    const char *output; /* "": none */
    opscope__kind_function *function;
};

/* A row without a name ends the table; those of one name follow each other. */
extern const struct opscope__kind opscope__kinds[];

/* number.c */
opscope__kind_function opscope__int_add, opscope__int_sub, opscope__int_mul, opscope__int_floordiv,
    opscope__int_mod, opscope__int_pow, opscope__int_truediv, opscope__int_neg, opscope__int_abs;
opscope__kind_function opscope__float_add, opscope__float_sub, opscope__float_mul,
    opscope__float_floordiv, opscope__float_mod, opscope__float_pow, opscope__float_truediv,
    opscope__float_neg, opscope__float_abs;
/* function.c */
opscope__kind_function opscope__float_round, opscope__float_floor, opscope__float_ceil,
    opscope__float_sqrt, opscope__float_exp, opscope__float_log;
/* bits.c */
opscope__kind_function opscope__int_and, opscope__int_or, opscope__int_xor, opscope__int_lshift,
    opscope__int_rshift, opscope__int_invert, opscope__bool_and, opscope__bool_or,
    opscope__bool_xor, opscope__bool_not;
/* compare.c */
opscope__kind_function opscope__any_eq, opscope__any_ne, opscope__any_is_none;
opscope__kind_function opscope__int_lt, opscope__int_le, opscope__int_gt, opscope__int_ge,
    opscope__int_min, opscope__int_max;
opscope__kind_function opscope__float_lt, opscope__float_le, opscope__float_gt, opscope__float_ge,
    opscope__float_min, opscope__float_max;
opscope__kind_function opscope__str_lt, opscope__str_le, opscope__str_gt, opscope__str_ge;
/* convert.c */
opscope__kind_function opscope__int_of_int, opscope__int_of_float, opscope__int_of_str,
    opscope__int_of_tensor;
opscope__kind_function opscope__float_of_int, opscope__float_of_float, opscope__float_of_str,
    opscope__float_of_tensor;
opscope__kind_function opscope__bool_of_int, opscope__bool_of_float, opscope__bool_of_tensor;
opscope__kind_function opscope__str_of_any;
/* text.c */
opscope__kind_function opscope__str_add, opscope__str_mul, opscope__str_len, opscope__str_getitem,
    opscope__str_slice, opscope__str_contains;
/* list.c */
opscope__kind_function opscope__list_add, opscope__list_mul, opscope__list_len,
    opscope__list_getitem, opscope__list_slice, opscope__list_contains, opscope__list_copy,
    opscope__list_range;
/* list_change.c */
opscope__kind_function opscope__list_setitem, opscope__list_append, opscope__list_extend,
    opscope__list_insert, opscope__list_pop, opscope__list_reverse, opscope__list_clear;
/* tensor.c */
opscope__kind_function opscope__tensor_len, opscope__tensor_dim, opscope__tensor_numel,
    opscope__tensor_is, opscope__tensor_sizes, opscope__tensor_size, opscope__tensor_dtype,
    opscope__tensor_of;

#endif
