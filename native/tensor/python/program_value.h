/* tensor/python/program_value.h -- Python objects as values of programs, and back. */
#ifndef OPSCOPE_TENSOR_PYTHON_PROGRAM_VALUE_H
#define OPSCOPE_TENSOR_PYTHON_PROGRAM_VALUE_H

#include "model/program/program.h"
#include "tensor/python/python.h"

/* False if the object is not of the type, or with an exception if it cannot be converted. */
bool opscope__py_to_value(struct opscope__heap *heap, PyObject *object,
                          const struct opscope__graph_type *type, struct opscope__value *out);
/* Sets a TypeError that names the input. */
void opscope__py_fail_input(const struct opscope__graph_value *wanted, PyObject *given);

/* One value is the result itself, several are a tuple, none is None. */
PyObject *opscope__py_results(const struct opscope__value *values, size_t count);
PyObject *opscope__py_value_tuple(const struct opscope__value *values, size_t count);

#endif
