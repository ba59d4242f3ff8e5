/* tensor/registry.h -- the table of operators: one level's specs, parsed, each with its range. */
#ifndef OPSCOPE_TENSOR_REGISTRY_H
#define OPSCOPE_TENSOR_REGISTRY_H

#include "tensor/operator.h"
#include "tensor/schema.h"

struct opscope_operator {
    const char *name; /* "core::add", of in-place ones "core::add_" */
    const struct opscope__operator_spec *spec;
    struct opscope__schema schema;
    const opscope_op *range;
    const opscope_op *backward_range; /* "core::add_backward" */
    bool is_inplace;
    struct opscope_operator *next; /* of the same hash */
};

/* Written by tensor.cmake, NULL at the end. */
extern const struct opscope__operator_spec *const opscope__operators_baseline[];
#if defined(__x86_64__)
extern const struct opscope__operator_spec *const opscope__operators_avx2[];
extern const struct opscope__operator_spec *const opscope__operators_avx512[];
#endif

OPSCOPE_API const struct opscope__operator_spec *opscope__operator_spec(const opscope_operator *op);
OPSCOPE_API const struct opscope__schema *opscope__operator_schema(const opscope_operator *op);

#endif
