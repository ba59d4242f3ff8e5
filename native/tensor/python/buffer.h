/* tensor/python/buffer.h -- tensors over the memory of Python objects. */
#ifndef OPSCOPE_TENSOR_PYTHON_BUFFER_H
#define OPSCOPE_TENSOR_PYTHON_BUFFER_H

#include "tensor/python/buffer_abi.h"
#include "tensor/python/python.h"

/* A new Tensor over the memory of an object with the buffer protocol. */
PyObject *opscope__py_tensor_over(PyObject *object);

#endif
