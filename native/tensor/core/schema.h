/* tensor/schema.h -- what an operator's schema string says, parsed once.
 *
 * The grammar is that of tensor/operator.h. Not here: binding a call's arguments (python/bind.c)
 * and what the types mean to a kernel.
 */
#ifndef OPSCOPE_TENSOR_SCHEMA_H
#define OPSCOPE_TENSOR_SCHEMA_H

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
    uint8_t length;    /* of int[N]: a lone int stands for N of it; else 0 */
    bool optional;     /* "type?": None is allowed */
    bool keyword_only; /* stands after "*" */
    bool has_default;
    opscope_argument otherwise; /* the default, where there is one */
};

/* Never moved once parsed: defaults point into it. */
struct opscope__schema {
    const char *name;
    size_t count;            /* parameters */
    size_t positional_count; /* of these before "*" */
    struct opscope__parameter parameters[OPSCOPE_ARGUMENT_LIMIT];
    size_t output_count;                            /* 0 where they are a list */
    const char *output_names[OPSCOPE_OUTPUT_LIMIT]; /* "" where the schema gives none */
    bool output_is_list;                            /* "-> Tensor[]" */
    /* Memory of the above. */
    int64_t integers[2 * OPSCOPE_ARGUMENT_LIMIT];
    size_t integer_count;
    char *text;
};

/* ERR_INVALID for text that is no schema, ERR_FULL where it has more parts than there is room for,
 * ERR_NO_MEMORY. What is parsed is never freed: operators are never unregistered. */
int opscope__schema_parse(const char *text, struct opscope__schema *out);

#endif
