/* tensor/python/autograd.h -- what the files about the tape share. */
#ifndef OPSCOPE_TENSOR_PYTHON_AUTOGRAD_H
#define OPSCOPE_TENSOR_PYTHON_AUTOGRAD_H

#include "opscope/autograd.h"
#include "tensor/python/python.h"

/* A Node, or None for NULL (node.c). */
PyObject *opscope__py_node_wrap(opscope_node *core);
int opscope__py_add_node(PyObject *module);

/* The tensors of a tuple, borrowed; None is NULL where allowed. The array is the caller's to
 * PyMem_Free. */
opscope_tensor **opscope__py_tensors_of(PyObject *tuple, const char *what, bool allow_none);

/* record(name, inputs, outputs, backward): puts a node on the tape (custom_node.c). */
PyObject *opscope__py_record(PyObject *module, PyObject *args);

#endif
