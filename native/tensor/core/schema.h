/* tensor/core/schema.h -- a parsed operator schema.
 *
 * tensor/core/operator.h has the grammar. python/bind.c binds a call's arguments; kernels interpret
 * the types.
 */
#ifndef OPSCOPE_TENSOR_CORE_SCHEMA_H
#define OPSCOPE_TENSOR_CORE_SCHEMA_H

#include "opscope/tensor.h"

enum opscope__type {
    OPSCOPE__TYPE_TENSOR,
    OPSCOPE__TYPE_TENSORS,
    OPSCOPE__TYPE_INT,
    OPSCOPE__TYPE_INTS,
    OPSCOPE__TYPE_INT_OR_INTS,
    OPSCOPE__TYPE_FLOAT,
    OPSCOPE__TYPE_BOOL,
    OPSCOPE__TYPE_SCALAR, /* a number: int or float */
    OPSCOPE__TYPE_DTYPE,
    OPSCOPE__TYPE_TEXT
};

struct opscope__parameter {
    const char *name;
    enum opscope__type type;
    uint8_t length;    /* of int[N]: a single int is repeated N times; else 0 */
    bool optional;     /* "type?": None is allowed */
    bool keyword_only; /* follows "*" */
    bool has_default;
    opscope_argument otherwise; /* the default, if it has one */
};

/* Stays in place once parsed: defaults point into it. */
struct opscope__schema {
    const char *name;
    size_t count;            /* parameters */
    size_t positional_count; /* the number of these before "*" */
    struct opscope__parameter parameters[OPSCOPE_ARGUMENT_LIMIT];
    size_t output_count;                            /* 0 for a list */
    const char *output_names[OPSCOPE_OUTPUT_LIMIT]; /* "" if the schema names none */
    bool output_is_list;                            /* "-> Tensor[]" */
    /* Memory for the above. */
    int64_t integers[2 * OPSCOPE_ARGUMENT_LIMIT];
    size_t integer_count;
    char *text;
};

/* ERR_INVALID for text that is no schema, ERR_FULL for one with too many parts, ERR_NO_MEMORY. A
 * parsed schema is never freed, because operators stay registered. */
int opscope__schema_parse(const char *text, struct opscope__schema *out);

#endif
