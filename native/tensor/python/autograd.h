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

/* Makes the exception that is set this thread's failure of the core, which carries it to the thread
 * that called the core (call.c raises it there). Returns a negative status. */
int opscope__py_fail_with_exception(const char *text);

/* Objects that hang on tensors: what the core keeps of them is released by this, with the GIL
 * taken. */
void opscope__py_release_object(void *object);
/* Shows them to the garbage collector, and lets go of them (collect.c). */
int opscope__py_tensor_traverse(PyObject *self, visitproc visit, void *arg);
int opscope__py_tensor_clear(PyObject *self);
/* Has the collector look at this Tensor. */
void opscope__py_track(PyObject *tensor);

/* Tensor.register_hook (hook.c). */
PyObject *opscope__py_register_hook(PyObject *self, PyObject *function);
int opscope__py_add_hook(PyObject *module);

/* record(name, inputs, outputs, backward): puts a node on the tape (custom_node.c). */
PyObject *opscope__py_record(PyObject *module, PyObject *args);
/* as_output(tensor, index): a saved output as it stands on the tape, for the backward that runs. */
PyObject *opscope__py_as_output(PyObject *module, PyObject *args);

#endif
