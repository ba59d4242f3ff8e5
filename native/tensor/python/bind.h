/* tensor/python/bind.h -- declarations shared by bind.c and bind_value.c. */
#ifndef OPSCOPE_TENSOR_PYTHON_BIND_H
#define OPSCOPE_TENSOR_PYTHON_BIND_H

#include "tensor/python/python.h"

/* Converts the argument for that parameter; -1 with an exception that names both if it cannot. */
int opscope__py_bind_value(const opscope_operator *op, const struct opscope__parameter *parameter,
                           PyObject *object, struct opscope__py_binding *binding,
                           opscope_argument *out);
/* Converts to a list of ints, which the binding keeps. */
int opscope__py_bind_integers(struct opscope__py_binding *binding, opscope_argument *out,
                              PyObject *const *items, size_t count);

#endif
