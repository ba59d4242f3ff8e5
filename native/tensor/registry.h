/* tensor/registry.h -- the table of operators: one level's specs, parsed, each with its range. */
#ifndef OPSCOPE_TENSOR_REGISTRY_H
#define OPSCOPE_TENSOR_REGISTRY_H

#include "tensor/operator.h"
#include "tensor/schema.h"

struct opscope_operator {
    const char *name; /* "core::add", of in-place ones "core::add_", of libraries "mine::scale" */
    const struct opscope__operator_spec *spec;
    struct opscope__schema schema;
    const opscope_op *range;
    const opscope_op
        *node_range; /* "core::AddBackward", of in-place ones too; NULL: leaves no node */
    bool is_inplace;
    bool has_node;                 /* a call of it that wants grad goes on the tape */
    struct opscope_operator *next; /* of the same hash */
};

/* Written by tensor.cmake, NULL at the end. */
extern const struct opscope__operator_spec *const opscope__operators_baseline[];
#if defined(OPSCOPE__HAS_X86_LEVELS)
extern const struct opscope__operator_spec *const opscope__operators_avx2[];
extern const struct opscope__operator_spec *const opscope__operators_avx512[];
#endif

/* Adds one of a library's, whose schema names its namespace: "mine::scale(...)"; its name must be
 * free. NULL where there is no room. The spec must stay. */
const opscope_operator *opscope__registry_add(const struct opscope__operator_spec *spec);

/* What the name of each node of the tape ends with, and that of no operator. */
#define OPSCOPE__NODE_NAME_END "Backward"

/* Of the node that a call leaves, "core::AddBackward"; NULL where it leaves none. */
OPSCOPE_API const char *opscope__operator_node_name(const opscope_operator *op);
OPSCOPE_API const struct opscope__operator_spec *opscope__operator_spec(const opscope_operator *op);
OPSCOPE_API const struct opscope__schema *opscope__operator_schema(const opscope_operator *op);

#endif
