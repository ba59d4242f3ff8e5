/* tensor/python/autograd.h -- declarations shared by the files about the tape. */
#ifndef OPSCOPE_TENSOR_PYTHON_AUTOGRAD_H
#define OPSCOPE_TENSOR_PYTHON_AUTOGRAD_H

#include "opscope/autograd.h"
#include "tensor/python/python.h"

/* A Node, or None for NULL (node.c). */
PyObject *opscope__py_node_wrap(opscope_node *core);
int opscope__py_add_node(PyObject *module);

/* Releases a Python object that the core keeps with a tensor; takes the GIL. */
void opscope__py_release_object(void *object);
/* Visits these objects for the garbage collector, and clears them (collect.c). */
int opscope__py_tensor_traverse(PyObject *self, visitproc visit, void *arg);
int opscope__py_tensor_clear(PyObject *self);
/* Makes the collector track this Tensor. */
void opscope__py_track(PyObject *tensor);

/* Tensor.register_hook (hook.c). */
PyObject *opscope__py_register_hook(PyObject *self, PyObject *function);
int opscope__py_add_hook(PyObject *module);

/* record(name, inputs, outputs, backward): records a custom node (custom_node.c). */
PyObject *opscope__py_record(PyObject *module, PyObject *args);
/* as_output(tensor, index): a saved output with its place on the tape, for the running backward. */
PyObject *opscope__py_as_output(PyObject *module, PyObject *args);

#endif
